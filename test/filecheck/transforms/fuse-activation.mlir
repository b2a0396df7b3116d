// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p fuse-activation --verify-rewrites --split-input-file --explain --verify-diagnostics | filecheck %s

// CHECK-LABEL: func.func @fuse
func.func @fuse(%x: tensor<5x3xf32>, %w: tensor<2x3xf32>, %y: tensor<5x2xf32>) -> (tensor<5x2xf32>, tensor<5x2xf32>) {
  // CHECK-NEXT: [[L:%[^ ]+]] = nn.linear %x, %w {activation = #nn.relu}
  // CHECK-NEXT: [[A:%[^ ]+]] = nn.add [[L]], %y {activation = #nn.clamp<0.000000e+00 : f32, 6.000000e+00 : f32>}
  // CHECK-NEXT: func.return [[L]], [[A]]
  %l = nn.linear %x, %w : (tensor<5x3xf32>, tensor<2x3xf32>) -> tensor<5x2xf32>
  %r = nn.relu %l : tensor<5x2xf32> -> tensor<5x2xf32>
  %a = nn.add %r, %y : (tensor<5x2xf32>, tensor<5x2xf32>) -> tensor<5x2xf32>
  %c = nn.clamp %a {min = 0.0 : f32, max = 6.0 : f32} : tensor<5x2xf32> -> tensor<5x2xf32>
  func.return %r, %c : tensor<5x2xf32>, tensor<5x2xf32>
}

// -----

// relu then clip [-1, 6]: [0, 6]. Clip [-1, 6] then relu: [0, 6]. Disjoint: [0, 1] then [2, 3] gives 2 everywhere.
// Bounds in disorder give the upper one.
// CHECK-LABEL: func.func @merge
func.func @merge(%x: tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>, tensor<7xf32>, tensor<7xf32>, tensor<7xf32>) {
  // CHECK: nn.clamp %x {min = 0.000000e+00 : f32, max = 6.000000e+00 : f32}
  // CHECK-NEXT: nn.clamp %x {min = 0.000000e+00 : f32, max = 6.000000e+00 : f32}
  // CHECK-NEXT: nn.clamp %x {min = 2.000000e+00 : f32, max = 2.000000e+00 : f32}
  // CHECK-NEXT: nn.clamp %x {min = 5.000000e+00 : f32, max = 4.000000e+00 : f32}
  // CHECK-NEXT: nn.relu %x
  // CHECK-NEXT: func.return
  %r = nn.relu %x : tensor<7xf32> -> tensor<7xf32>
  %a = nn.clamp %r {min = -1.0 : f32, max = 6.0 : f32} : tensor<7xf32> -> tensor<7xf32>
  %c = nn.clamp %x {min = -1.0 : f32, max = 6.0 : f32} : tensor<7xf32> -> tensor<7xf32>
  %b = nn.relu %c : tensor<7xf32> -> tensor<7xf32>
  %d = nn.clamp %x {min = 0.0 : f32, max = 1.0 : f32} : tensor<7xf32> -> tensor<7xf32>
  %e = nn.clamp %d {min = 2.0 : f32, max = 3.0 : f32} : tensor<7xf32> -> tensor<7xf32>
  %f = nn.clamp %x {min = 5.0 : f32, max = 3.0 : f32} : tensor<7xf32> -> tensor<7xf32>
  %g = nn.clamp %f {min = 4.0 : f32, max = 9.0 : f32} : tensor<7xf32> -> tensor<7xf32>
  %h = nn.relu %x : tensor<7xf32> -> tensor<7xf32>
  %i = nn.relu %h : tensor<7xf32> -> tensor<7xf32>
  func.return %a, %b, %e, %g, %i : tensor<7xf32>, tensor<7xf32>, tensor<7xf32>, tensor<7xf32>, tensor<7xf32>
}

// -----

// An activation that is there already merges.
// CHECK-LABEL: func.func @second
func.func @second(%x: tensor<7xf32>) -> tensor<7xf32> {
  // CHECK-NEXT: nn.mul %x, %x {activation = #nn.clamp<0.000000e+00 : f32, 2.000000e+00 : f32>}
  // CHECK-NEXT: func.return
  %m = nn.mul %x, %x {activation = #nn.clamp<-1.0 : f32, 2.0 : f32>} : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xf32>
  %r = nn.relu %m : tensor<7xf32> -> tensor<7xf32>
  func.return %r : tensor<7xf32>
}

// -----

// Must not fuse: the producer's result is used elsewhere, here returned.
// CHECK-LABEL: func.func @other_use
func.func @other_use(%x: tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>) {
  // CHECK-NEXT: nn.mul %x, %x :
  // CHECK-NEXT: nn.relu
  %m = nn.mul %x, %x : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xf32>
  // expected-remark@+1 {{FuseIntoProducer refused 'nn.relu': the result of nn.mul has other uses}}
  %r = nn.relu %m : tensor<7xf32> -> tensor<7xf32>
  func.return %r, %m : tensor<7xf32>, tensor<7xf32>
}

// -----

// Must not fuse: the producer takes none.
// CHECK-LABEL: func.func @producer
func.func @producer(%x: tensor<7xf32>) -> tensor<7xf32> {
  // CHECK-NEXT: nn.neg
  // CHECK-NEXT: nn.relu
  %m = nn.neg %x : tensor<7xf32> -> tensor<7xf32>
  %r = nn.relu %m : tensor<7xf32> -> tensor<7xf32>
  func.return %r : tensor<7xf32>
}

// -----

// Must not fuse or merge: arithmetic in another type, or on codes.
func.func @types(%x: tensor<7xf64>, %y: tensor<7xi8>, %q: tensor<7x!quant.uniform<i8:f32, 0.5:1>>) -> (tensor<7xf64>, tensor<7xf64>, tensor<7xi8>, tensor<7x!quant.uniform<i8:f32, 0.5:1>>) {
  %m = nn.mul %x, %x : (tensor<7xf64>, tensor<7xf64>) -> tensor<7xf64>
  // expected-remark@+1 {{nn.mul computes on f64, not f32}}
  %r = nn.relu %m : tensor<7xf64> -> tensor<7xf64>
  %s = nn.relu %x : tensor<7xf64> -> tensor<7xf64>
  // expected-remark@+1 {{MergeActivations refused 'nn.relu': computes on f64, not f32}}
  %t = nn.relu %s : tensor<7xf64> -> tensor<7xf64>
  %n = nn.add %y, %y : (tensor<7xi8>, tensor<7xi8>) -> tensor<7xi8>
  // expected-remark@+1 {{nn.add computes on i8, not f32}}
  %u = nn.relu %n : tensor<7xi8> -> tensor<7xi8>
  %a = nn.add %q, %q : (tensor<7x!quant.uniform<i8:f32, 0.5:1>>, tensor<7x!quant.uniform<i8:f32, 0.5:1>>) -> tensor<7x!quant.uniform<i8:f32, 0.5:1>>
  // expected-remark-re@+1 {{nn.add computes on !quant.uniform{{.*}}, not f32}}
  %v = nn.relu %a : tensor<7x!quant.uniform<i8:f32, 0.5:1>> -> tensor<7x!quant.uniform<i8:f32, 0.5:1>>
  func.return %r, %t, %u, %v : tensor<7xf64>, tensor<7xf64>, tensor<7xi8>, tensor<7x!quant.uniform<i8:f32, 0.5:1>>
}

// -----

// Must not merge: 0.0 below and -0.0 above, no clamp gives -0.0 for all.
func.func @zeros(%x: tensor<7xf32>) -> tensor<7xf32> {
  %d = nn.clamp %x {min = 0.0 : f32, max = 1.0 : f32} : tensor<7xf32> -> tensor<7xf32>
  // expected-remark@+1 {{the merged bounds are zeros of unlike sign}}
  %e = nn.clamp %d {min = -2.0 : f32, max = -0.0 : f32} : tensor<7xf32> -> tensor<7xf32>
  func.return %e : tensor<7xf32>
}

// -----

func.func @error(%x: tensor<7xf32>) -> tensor<7xf32> {
  // expected-error@+1 {{clamp bounds must not be NaN}}
  %e = nn.clamp %x {min = 0x7FC00000 : f32, max = 0.0 : f32} : tensor<7xf32> -> tensor<7xf32>
  func.return %e : tensor<7xf32>
}
