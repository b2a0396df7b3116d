// RUN: qcomp-opt %s --split-input-file --verify-diagnostics

func.func @f(%m: memref<4x8xi8>, %i: index) {
  // expected-error@+1 {{one index per buffer dimension is needed}}
  %v = loop.load %m[%i] : memref<4x8xi8>, i8
  func.return
}

// -----

func.func @f(%m: memref<4x8xi8>, %i: index) {
  // expected-error@+1 {{indices take one symbol per operand}}
  %v = "loop.load"(%m, %i) <{map = affine_map<(d0) -> (d0, 0)>}> : (memref<4x8xi8>, index) -> i8
  func.return
}

// -----

func.func @f(%m: memref<4x8xi8>, %i: index) {
  // expected-error@+1 {{indices divide by positive constants only}}
  %v = loop.load %m[%i mod 0, 0] : memref<4x8xi8>, i8
  func.return
}

// -----

func.func @f(%m: memref<4x8xi8>, %i: index) {
  // expected-error@+1 {{moves i32, the buffer holds i8}}
  %v = loop.load %m[%i, 0] : memref<4x8xi8>, i32
  func.return
}

// -----

func.func @f(%m: memref<4x8xi8>, %i: index) {
  // expected-error@+1 {{over and steps need one entry per tile dimension}}
  %v = loop.load %m[%i, 0] : memref<4x8xi8>, vector<4xi8>
  func.return
}

// -----

func.func @f(%m: memref<4x8xi8>, %v: vector<2x4xi8>) {
  // expected-error@+1 {{over and steps need one entry per tile dimension}}
  loop.store %v, %m[0, 0] over (1) : memref<4x8xi8>, vector<2x4xi8>
  func.return
}

// -----

func.func @f(%m: memref<4x8xi8>, %i: index) {
  // expected-error@+1 {{a tile dimension lies outside the buffer's dimensions}}
  %v = loop.load %m[%i, 0] over (2) : memref<4x8xi8>, vector<4xi8>
  func.return
}

// -----

func.func @f(%m: memref<4x8xi8>, %i: index) {
  // expected-error@+1 {{valid must be below the tile's last dimension}}
  %v = loop.load %m[%i, 0] over (1) valid 4 : memref<4x8xi8>, vector<4xi8>
  func.return
}

// -----

func.func @f(%m: memref<4x8xi8>, %i: index) {
  // expected-error@+1 {{valid must be below the tile's last dimension}}
  %v = loop.load %m[%i, 0] valid 1 : memref<4x8xi8>, i8
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{a constant of tensor<2xi8> cannot be a memref<3xi8>}}
  %c = loop.constant {value = #nn.data<dense<[1, 2]> : tensor<2xi8>>} : memref<3xi8>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{a constant of tensor<2xi8> cannot be a memref<2xi32>}}
  %c = loop.constant {value = #nn.data<dense<[1, 2]> : tensor<2xi8>>} : memref<2xi32>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{buffers cannot hold bf16}}
  %c = loop.constant {value = #nn.data<dense<[1.0, 2.0]> : tensor<2xbf16>>} : memref<2xbf16>
  func.return
}

// -----

func.func @f(%m: memref<35xi8>) {
  // expected-error@+1 {{24 bytes from 12 on do not lie inside memref<35xi8>}}
  %v = loop.view %m {offset = 12 : i64} : memref<35xi8> to memref<6xf32>
  func.return
}

// -----

func.func @f(%m: memref<35xi8>) {
  // expected-error@+1 {{4 bytes from -4 on do not lie inside memref<35xi8>}}
  %v = loop.view %m {offset = -4 : i64} : memref<35xi8> to memref<1xf32>
  func.return
}

// -----

func.func @f(%m: memref<35xi8>) {
  // expected-error@+1 {{offset must be a multiple of the element size}}
  %v = loop.view %m {offset = 6 : i64} : memref<35xi8> to memref<6xf32>
  func.return
}

// -----

func.func @f(%m: memref<?xi8>) {
  // expected-error@+1 {{a view needs shapes that are known}}
  %v = loop.view %m {offset = 4 : i64} : memref<?xi8> to memref<1xf32>
  func.return
}

// -----

func.func @f(%a: vector<14x16xi32>, %p: vector<14x4xi8>, %q: vector<16x4xi8>) {
  // expected-error@+1 {{attribute vector<14x16xi32> expected from variable 'T', but got vector<16x14xi32>}}
  %r = "loop.contract"(%a, %p, %q) : (vector<14x16xi32>, vector<14x4xi8>, vector<16x4xi8>) -> vector<16x14xi32>
  func.return
}

// -----

func.func @f(%a: vector<14x16xi32>, %p: vector<14x4xi8>, %q: vector<16x2xi8>) {
  // expected-error@+1 {{operands differ in their last dimension}}
  %r = loop.contract %a, %p, %q : vector<14x4xi8>, vector<16x2xi8> -> vector<14x16xi32>
  func.return
}

// -----

func.func @f(%a: vector<16x14xi32>, %p: vector<14x4xi8>, %q: vector<16x4xi8>) {
  // expected-error@+1 {{the accumulator must have shape [14, 16]}}
  %r = loop.contract %a, %p, %q : vector<14x4xi8>, vector<16x4xi8> -> vector<16x14xi32>
  func.return
}

// -----

func.func @f(%a: vector<14x16xi32>, %p: vector<14x4xi16>, %q: vector<16x4xi8>) {
  // expected-error@+1 {{contracts i8 into i32, f32 into f32 or f64 into f64}}
  %r = loop.contract %a, %p, %q : vector<14x4xi16>, vector<16x4xi8> -> vector<14x16xi32>
  func.return
}

// -----

func.func @f(%a: vector<14x16xf32>, %p: vector<14x4xf32>, %q: vector<16x4xf32>) {
  // expected-error@+1 {{floats contract over 1}}
  %r = loop.contract %a, %p, %q : vector<14x4xf32>, vector<16x4xf32> -> vector<14x16xf32>
  func.return
}

// -----

func.func @f(%a: vector<14xi32>, %p: vector<14xi8>, %q: vector<7xi8>) {
  // expected-error@+1 {{operands and result must have one shape}}
  %r = loop.multiply_add %a, %p, %q : vector<14xi8>, vector<7xi8> -> vector<14xi32>
  func.return
}

// -----

func.func @f(%a: vector<14xi32>, %p: vector<14xi32>) {
  // expected-error@+1 {{multiplies i8 into i32, f32 into f32 or f64 into f64}}
  %r = loop.multiply_add %a, %p, %p : vector<14xi32>, vector<14xi32> -> vector<14xi32>
  func.return
}

// -----

func.func @f(%p: vector<14x4xi8>) {
  // expected-error@+1 {{the operand's shape must be a suffix of the result's}}
  %r = loop.broadcast %p : vector<14x4xi8> to vector<14x4x2xi8>
  func.return
}

// -----

func.func @f(%p: vector<4xi8>) {
  // expected-error@+1 {{element types differ}}
  %r = loop.broadcast %p : vector<4xi8> to vector<14x4xi32>
  func.return
}

// -----

func.func @f(%p: vector<4xi8>) {
  // expected-error@+1 {{shapes differ}}
  %r = loop.extend %p : vector<4xi8> -> vector<5xi32>
  func.return
}

// -----

func.func @f(%p: vector<4xi32>) {
  // expected-error@+1 {{loop.extend does not turn i32 into i32}}
  %r = loop.extend %p : vector<4xi32> -> vector<4xi32>
  func.return
}

// -----

func.func @f(%p: i8) {
  // expected-error@+1 {{loop.to_float does not turn i8 into f32}}
  %r = loop.to_float %p : i8 -> f32
  func.return
}

// -----

func.func @f(%p: f32) {
  // expected-error@+1 {{loop.round does not turn f32 into i8}}
  %r = loop.round %p : f32 -> i8
  func.return
}

// -----

func.func @f(%p: f32) {
  // expected-error@+1 {{loop.narrow does not turn f32 into i8}}
  %r = loop.narrow %p {min = 0 : i64, max = 255 : i64} : f32 -> i8
  func.return
}

// -----

func.func @f(%p: f32) {
  // expected-error@+1 {{loop.clamp does not turn f32 into i32}}
  %r = loop.clamp %p {min = 0.0 : f32, max = 1.0 : f32} : f32 -> i32
  func.return
}

// -----

func.func @f(%p: i32) {
  // expected-error@+1 {{bounds must fit 8 bits and be ordered}}
  %r = loop.narrow %p {min = -1 : i64, max = 128 : i64} : i32 -> i8
  func.return
}

// -----

func.func @f(%p: i32) {
  // expected-error@+1 {{bounds must fit 8 bits and be ordered}}
  %r = loop.narrow %p {min = 9 : i64, max = 8 : i64} : i32 -> i8
  func.return
}

// -----

func.func @f(%t: memref<255xi8>, %p: i8) {
  // expected-error@+1 {{a table has 16 or 256 entries}}
  %r = loop.lookup %t[%p] : memref<255xi8>, i8 -> i8
  func.return
}

// -----

func.func @f(%t: memref<256xi8>, %p: i32) {
  // expected-error@+1 {{the operand must be i8}}
  %r = loop.lookup %t[%p] : memref<256xi8>, i32 -> i8
  func.return
}

// -----

func.func @f(%t: memref<16xf32>, %p: vector<3xi8>) {
  // expected-error@+1 {{the operand must be i32}}
  %r = loop.lookup %t[%p] : memref<16xf32>, vector<3xi8> -> vector<3xf32>
  func.return
}

// -----

func.func @f(%t: memref<256xf32>, %p: vector<3xi8>) {
  // expected-error@+1 {{the result holds table entries}}
  %r = loop.lookup %t[%p] : memref<256xf32>, vector<3xi8> -> vector<3xi8>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{step must be at least 1}}
  loop.for %i = [0] to [4] step 0 {
  }
  func.return
}

// -----

func.func @f(%z: i32) {
  // expected-error@+1 {{a parallel loop cannot carry values}}
  %r = loop.for %i = [0] to [4] parallel iter (%a = %z) : i32 {
    loop.yield %a : i32
  }
  func.return
}

// -----

func.func @f(%z: i32) {
  // expected-error@+1 {{the body must yield the carried values}}
  %r = loop.for %i = [0] to [4] iter (%a = %z) : i32 {
  }
  func.return
}

// -----

func.func @f(%n: index) {
  // expected-error@+1 {{indices divide by positive constants only}}
  loop.for %i = [0] to [%n floordiv -2] {
  }
  func.return
}

// -----

func.func @f(%z: i32) {
  // expected-error@+1 {{body arguments must be the loop variable and the carried values}}
  %r = "loop.for"(%z) <{lower = affine_map<() -> (0)>, upper = affine_map<() -> (4)>, step = 1 : i64, operandSegmentSizes = array<i32: 0, 0, 1>}> ({
  ^bb0(%i: index):
    loop.yield %z : i32
  }) : (i32) -> i32
  func.return
}

// -----

func.func @f(%z: i32) {
  // expected-error@+1 {{results must be the carried values}}
  %r = "loop.for"(%z) <{lower = affine_map<() -> (0)>, upper = affine_map<() -> (4)>, step = 1 : i64, operandSegmentSizes = array<i32: 0, 0, 1>}> ({
  ^bb0(%i: index, %a: i32):
    loop.yield %z : i32
  }) : (i32) -> f32
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{kind must be one of parallel, unroll}}
  "loop.for"() <{lower = affine_map<() -> (0)>, upper = affine_map<() -> (4)>, step = 1 : i64, kind = "serial", operandSegmentSizes = array<i32: 0, 0, 0>}> ({
  ^bb0(%i: index):
    loop.yield
  }) : () -> ()
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{bounds take one symbol per operand and have a result}}
  "loop.for"() <{lower = affine_map<() -> ()>, upper = affine_map<() -> (4)>, step = 1 : i64, operandSegmentSizes = array<i32: 0, 0, 0>}> ({
  ^bb0(%i: index):
    loop.yield
  }) : () -> ()
  func.return
}

// -----

func.func @f(%n: index) {
  // expected-error@+1 {{bounds take one symbol per operand and have a result}}
  "loop.for"(%n) <{lower = affine_map<() -> (0)>, upper = affine_map<() -> (4)>, step = 1 : i64, operandSegmentSizes = array<i32: 0, 1, 0>}> ({
  ^bb0(%i: index):
    loop.yield
  }) : (index) -> ()
  func.return
}

// -----

func.func @f(%x: vector<3xf32>, %y: vector<3xf32>, %k: i8, %c: vector<3xi1>) {
  // expected-error@+1 {{the predicate must be one of eq, ne, lt, le, gt, ge}}
  %r = loop.compare "olt", %x, %y : vector<3xf32> -> vector<3xi1>
  func.return
}

// -----

func.func @f(%x: vector<3xf32>, %y: vector<3xf32>, %k: i8, %c: vector<3xi1>) {
  // expected-error@+1 {{compares f32, f64, i32 or i64}}
  %r = loop.compare "lt", %k, %k : i8 -> i1
  func.return
}

// -----

func.func @f(%x: vector<3xf32>, %y: vector<3xf32>, %k: i8, %c: vector<3xi1>) {
  // expected-error@+1 {{the result must be i1 in the operands' shape}}
  %r = loop.compare "lt", %x, %y : vector<3xf32> -> i1
  func.return
}

// -----

func.func @f(%x: vector<3xf32>, %c: i1) {
  // expected-error@+1 {{the condition must be i1 in the shape}}
  %r = loop.select %c, %x, %x : i1, vector<3xf32>
  func.return
}

// -----

func.func @f(%x: vector<3xf32>, %y: vector<3xf32>, %k: i8, %c: vector<3xi1>) {
  // expected-error@+1 {{takes f32 or f64}}
  %r = loop.maximum %k, %k : i8
  func.return
}

// -----

func.func @f(%x: vector<3xf32>, %y: vector<3xf32>, %k: i8, %c: vector<3xi1>) {
  // expected-error@+1 {{takes f32 or f64}}
  %r = loop.minimum %k, %k : i8
  func.return
}

// -----

func.func @f(%x: vector<3xf32>, %y: vector<3xf32>, %k: i8, %c: vector<3xi1>) {
  // expected-error@+1 {{scales f32 or f64}}
  %r = loop.scale %k, %k : i8
  func.return
}

// -----

func.func @f(%x: vector<3xf32>, %y: vector<3xf32>, %k: i8, %c: vector<3xi1>) {
  // expected-error@+1 {{turns f32 or f64 into i32 or i64}}
  %r = loop.truncate %x : vector<3xf32> -> vector<3xi8>
  func.return
}

// -----

func.func @f(%x: vector<3xf32>, %y: vector<3xf32>, %k: i8, %c: vector<3xi1>) {
  // expected-error@+1 {{shapes differ}}
  %r = loop.truncate %x : vector<3xf32> -> vector<2xi32>
  func.return
}

// -----

func.func @f(%x: vector<3xf32>, %y: vector<3xf32>, %k: i8, %c: vector<3xi1>) {
  // expected-error@+1 {{the kind must be one of add, max}}
  %r = loop.reduce "mul", %x : vector<3xf32> -> f32
  func.return
}

// -----

func.func @f(%x: vector<3xf32>, %y: vector<3xf32>, %k: i8, %c: vector<3xi1>) {
  // expected-error@+1 {{reduces a vector of 2^k elements}}
  %r = loop.reduce "add", %x : vector<3xf32> -> f32
  func.return
}

// -----

func.func @f(%x: vector<4xi8>) {
  // expected-error@+1 {{reduces f32, f64 or i32}}
  %r = loop.reduce "add", %x : vector<4xi8> -> i8
  func.return
}

// -----

func.func @f(%m: memref<?xf32, #nn.dims<[s]>>, %i: index) {
  // expected-error@+1 {{valid is a number or #nn.dim}}
  %t = loop.load %m[%i] over (0) valid "four" : memref<?xf32, #nn.dims<[s]>>, vector<16xf32>
  func.return
}
