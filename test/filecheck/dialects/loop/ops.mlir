// RUN: qcomp-opt %s | filecheck %s
// RUN: qcomp-opt %s | qcomp-opt | filecheck %s
// RUN: qcomp-opt %s --print-op-generic | qcomp-opt | filecheck %s

// CHECK-LABEL: func.func @loops(
// CHECK-NEXT:    %zero = arith.constant 0 : i32
// CHECK-NEXT:    loop.for %i = [0] to [9] {
// CHECK-NEXT:    }
// CHECK-NEXT:    loop.for %i_1 = [3] to [%n] step 2 parallel {
// CHECK-NEXT:    loop.for %j = [(%i_1 * 2) + 1, 0] to [%n, %i_1 + 4, 9] unroll {
// CHECK-NEXT:    %v = loop.load %m[%i_1, %j] : memref<9x9xi32>, i32
// CHECK-NEXT:    }
// CHECK-NEXT:    } attributes {note = "plain text"}
// CHECK-NEXT:    %s, %t = loop.for %k = [0] to [4] iter (%a = %zero, %b = %zero) : i32, i32 {
// CHECK-NEXT:    %c = arith.addi %a, %b : i32
// CHECK-NEXT:    loop.yield %b, %c : i32, i32
// CHECK-NEXT:    }
// CHECK-NEXT:    %u = loop.for %k_1 = [0] to [4] step 4 unroll iter (%a_1 = %s) : i32 {
// CHECK-NEXT:    loop.yield %a_1 : i32
// CHECK-NEXT:    }
func.func @loops(%m: memref<9x9xi32>, %n: index) {
  %zero = arith.constant 0 : i32
  loop.for %i = [0] to [9] {
  }
  loop.for %i = [3] to [%n] step 2 parallel {
    loop.for %j = [%i * 2 + 1, 0] to [%n, %i + 4, 9] unroll {
      %v = loop.load %m[%i, %j] : memref<9x9xi32>, i32
    }
  } attributes {note = "plain text"}
  %s, %t = loop.for %k = [0] to [4] iter (%a = %zero, %b = %zero) : i32, i32 {
    %c = arith.addi %a, %b : i32
    loop.yield %b, %c : i32, i32
  }
  %u = loop.for %k = [0] to [4] step 4 unroll iter (%a = %s) : i32 {
    loop.yield %a : i32
  }
  func.return
}

// CHECK-LABEL: func.func @accesses(
// CHECK-NEXT:    %a = loop.load %m[0, %i, %j * 4] : memref<2x56x64xi8>, i8
// CHECK-NEXT:    %b = loop.load %m[%i floordiv 2, (%i + %j) + -3, %j mod 64] over (1 step 2, 2) : memref<2x56x64xi8>, vector<14x4xi8>
// CHECK-NEXT:    %c = loop.load %m[1, (%i + (%j * 3)) ceildiv 4, 0] over (1, 2 step 16, 2) valid 5 : memref<2x56x64xi8>, vector<3x2x16xi8>
// CHECK-NEXT:    %d = loop.load %m[1, 0, 0] over (1 step -1) {note = 3 : i64} : memref<2x56x64xi8>, vector<4xi8>
// CHECK-NEXT:    %e = loop.load %s[] : memref<f32>, f32
// CHECK-NEXT:    loop.store %a, %m[1, 2, 3] : memref<2x56x64xi8>, i8
// CHECK-NEXT:    loop.store %b, %m[%j, 0, 0] over (1, 2) : memref<2x56x64xi8>, vector<14x4xi8>
// CHECK-NEXT:    loop.store %c, %m[0, 0, 0] over (0, 1, 2) valid 9 : memref<2x56x64xi8>, vector<3x2x16xi8>
// CHECK-NEXT:    loop.store %e, %s[] : memref<f32>, f32
func.func @accesses(%m: memref<2x56x64xi8>, %s: memref<f32>, %i: index, %j: index) {
  %a = loop.load %m[0, %i, %j * 4] : memref<2x56x64xi8>, i8
  %b = loop.load %m[%i floordiv 2, %i + %j - 3, %j mod 64] over (1 step 2, 2) : memref<2x56x64xi8>, vector<14x4xi8>
  %c = loop.load %m[1, (%i + %j * 3) ceildiv 4, 0] over (1, 2 step 16, 2) valid 5 : memref<2x56x64xi8>, vector<3x2x16xi8>
  %d = loop.load %m[1, 0, 0] over (1 step -1) {note = 3 : i64} : memref<2x56x64xi8>, vector<4xi8>
  %e = loop.load %s[] : memref<f32>, f32
  loop.store %a, %m[1, 2, 3] : memref<2x56x64xi8>, i8
  loop.store %b, %m[%j, 0, 0] over (1, 2) : memref<2x56x64xi8>, vector<14x4xi8>
  loop.store %c, %m[0, 0, 0] over (0, 1, 2) valid 9 : memref<2x56x64xi8>, vector<3x2x16xi8>
  loop.store %e, %s[] : memref<f32>, f32
  func.return
}

// CHECK-LABEL: func.func @buffers(
// CHECK-NEXT:    %w = loop.constant {value = #nn.data<dense<[1, -2, 3]> : tensor<3xi8>>} : memref<3xi8>
// CHECK-NEXT:    %c = loop.constant {value = #nn.data<dense<{{\[\[}}200], [1]]> : tensor<2x1xui8>>} : memref<2x1xi8>
// CHECK-NEXT:    %v = loop.view %arena {offset = 64 : i64} : memref<4096xi8> to memref<2x3xf32>
// CHECK-NEXT:    %r = loop.lookup %table[%x] : memref<256xf32>, vector<5xi8> -> vector<5xf32>
// CHECK-NEXT:    %s = loop.lookup %small[%y] : memref<16xf32>, vector<16x1xi32> -> vector<16x1xf32>
func.func @buffers(%arena: memref<4096xi8>, %table: memref<256xf32>, %x: vector<5xi8>, %small: memref<16xf32>, %y: vector<16x1xi32>) {
  %w = loop.constant {value = #nn.data<dense<[1, -2, 3]> : tensor<3xi8>>} : memref<3xi8>
  %c = loop.constant {value = #nn.data<dense<[[200], [1]]> : tensor<2x1xui8>>} : memref<2x1xi8>
  %v = loop.view %arena {offset = 64 : i64} : memref<4096xi8> to memref<2x3xf32>
  %r = loop.lookup %table[%x] : memref<256xf32>, vector<5xi8> -> vector<5xf32>
  %s = loop.lookup %small[%y] : memref<16xf32>, vector<16x1xi32> -> vector<16x1xf32>
  func.return
}

// CHECK-LABEL: func.func @contractions(
// CHECK-NEXT:    %r = loop.contract %a, %p, %q {lhs_unsigned} : vector<14x4xi8>, vector<2x16x4xi8> -> vector<14x2x16xi32>
// CHECK-NEXT:    %s = loop.contract %r, %p, %q {rhs_unsigned} : vector<14x4xi8>, vector<2x16x4xi8> -> vector<14x2x16xi32>
// CHECK-NEXT:    %t = loop.contract %f, %g, %h : vector<3x1xf32>, vector<2x1xf32> -> vector<3x2xf32>
// CHECK-NEXT:    %u = loop.multiply_add %d, %e, %e {lhs_unsigned, rhs_unsigned} : vector<14xi8>, vector<14xi8> -> vector<14xi32>
// CHECK-NEXT:    %v = loop.multiply_add %t, %f, %f : vector<3x2xf32>, vector<3x2xf32> -> vector<3x2xf32>
func.func @contractions(%a: vector<14x2x16xi32>, %p: vector<14x4xi8>, %q: vector<2x16x4xi8>, %f: vector<3x2xf32>,
                        %g: vector<3x1xf32>, %h: vector<2x1xf32>, %d: vector<14xi32>, %e: vector<14xi8>) {
  %r = loop.contract %a, %p, %q {lhs_unsigned} : vector<14x4xi8>, vector<2x16x4xi8> -> vector<14x2x16xi32>
  %s = loop.contract %r, %p, %q {rhs_unsigned} : vector<14x4xi8>, vector<2x16x4xi8> -> vector<14x2x16xi32>
  %t = loop.contract %f, %g, %h : vector<3x1xf32>, vector<2x1xf32> -> vector<3x2xf32>
  %u = loop.multiply_add %d, %e, %e {lhs_unsigned, rhs_unsigned} : vector<14xi8>, vector<14xi8> -> vector<14xi32>
  %v = loop.multiply_add %t, %f, %f : vector<3x2xf32>, vector<3x2xf32> -> vector<3x2xf32>
  func.return
}

// CHECK-LABEL: func.func @conversions(
// CHECK-NEXT:    %wide = loop.broadcast %c : i8 to vector<5x6xi8>
// CHECK-NEXT:    %more = loop.broadcast %b : vector<3x4xi8> to vector<2x3x4xi8>
// CHECK-NEXT:    %s = loop.extend %b : vector<3x4xi8> -> vector<3x4xi32>
// CHECK-NEXT:    %u = loop.extend %c {unsigned} : i8 -> i32
// CHECK-NEXT:    %f = loop.to_float %s : vector<3x4xi32> -> vector<3x4xf32>
// CHECK-NEXT:    %r = loop.round %f {bounded} : vector<3x4xf32> -> vector<3x4xi32>
// CHECK-NEXT:    %t = loop.round %x {nan = -3 : i64} : vector<3x4xf32> -> vector<3x4xi32>
// CHECK-NEXT:    %n = loop.narrow %r {min = 7 : i64, max = 255 : i64} : vector<3x4xi32> -> vector<3x4xi8>
// CHECK-NEXT:    %l = loop.clamp %f {min = -1.000000e+00 : f32, max = 6.000000e+00 : f32} : vector<3x4xf32> -> vector<3x4xf32>
func.func @conversions(%c: i8, %b: vector<3x4xi8>, %x: vector<3x4xf32>) {
  %wide = loop.broadcast %c : i8 to vector<5x6xi8>
  %more = loop.broadcast %b : vector<3x4xi8> to vector<2x3x4xi8>
  %s = loop.extend %b : vector<3x4xi8> -> vector<3x4xi32>
  %u = loop.extend %c {unsigned} : i8 -> i32
  %f = loop.to_float %s : vector<3x4xi32> -> vector<3x4xf32>
  %r = loop.round %f {bounded} : vector<3x4xf32> -> vector<3x4xi32>
  %t = loop.round %x {nan = -3 : i64} : vector<3x4xf32> -> vector<3x4xi32>
  %n = loop.narrow %r {min = 7 : i64, max = 255 : i64} : vector<3x4xi32> -> vector<3x4xi8>
  %l = loop.clamp %f {min = -1.0 : f32, max = 6.0 : f32} : vector<3x4xf32> -> vector<3x4xf32>
  func.return
}

// CHECK-LABEL: func.func @reals(
// CHECK-NEXT:    %c = loop.compare "lt", %x, %y : vector<3x4xf32> -> vector<3x4xi1>
// CHECK-NEXT:    %d = loop.compare "ge", %i, %i : i32 -> i1
// CHECK-NEXT:    %t = loop.select %c, %x, %y : vector<3x4xi1>, vector<3x4xf32>
// CHECK-NEXT:    %u = loop.select %d, %i, %i : i1, i32
// CHECK-NEXT:    %max = loop.maximum %x, %t : vector<3x4xf32>
// CHECK-NEXT:    %min = loop.minimum %s, %s : f32
// CHECK-NEXT:    %p = loop.scale %max, %y : vector<3x4xf32>
// CHECK-NEXT:    %n = loop.truncate %p : vector<3x4xf32> -> vector<3x4xi32>
// CHECK-NEXT:    %l = loop.truncate %s : f32 -> i64
// CHECK-NEXT:    %r = loop.reduce "add", %v : vector<8xf32> -> f32
// CHECK-NEXT:    %q = loop.reduce "max", %v : vector<8xf32> -> f32
func.func @reals(%x: vector<3x4xf32>, %y: vector<3x4xf32>, %i: i32, %v: vector<8xf32>, %s: f32) {
  %c = loop.compare "lt", %x, %y : vector<3x4xf32> -> vector<3x4xi1>
  %d = loop.compare "ge", %i, %i : i32 -> i1
  %t = loop.select %c, %x, %y : vector<3x4xi1>, vector<3x4xf32>
  %u = loop.select %d, %i, %i : i1, i32
  %max = loop.maximum %x, %t : vector<3x4xf32>
  %min = loop.minimum %s, %s : f32
  %p = loop.scale %max, %y : vector<3x4xf32>
  %n = loop.truncate %p : vector<3x4xf32> -> vector<3x4xi32>
  %l = loop.truncate %s : f32 -> i64
  %r = loop.reduce "add", %v : vector<8xf32> -> f32
  %q = loop.reduce "max", %v : vector<8xf32> -> f32
  func.return
}
