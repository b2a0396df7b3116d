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

// Must not fuse or merge: arithmetic in another type.
func.func @types(%x: tensor<7xf64>, %y: tensor<7xi8>) -> (tensor<7xf64>, tensor<7xf64>, tensor<7xi8>) {
  %m = nn.mul %x, %x : (tensor<7xf64>, tensor<7xf64>) -> tensor<7xf64>
  // expected-remark@+1 {{nn.mul computes on f64, not f32}}
  %r = nn.relu %m : tensor<7xf64> -> tensor<7xf64>
  %s = nn.relu %x : tensor<7xf64> -> tensor<7xf64>
  // expected-remark@+1 {{MergeActivations refused 'nn.relu': computes on f64, not f32}}
  %t = nn.relu %s : tensor<7xf64> -> tensor<7xf64>
  %n = nn.add %y, %y : (tensor<7xi8>, tensor<7xi8>) -> tensor<7xi8>
  // expected-remark@+1 {{nn.add computes on i8, not f32}}
  %u = nn.relu %n : tensor<7xi8> -> tensor<7xi8>
  func.return %r, %t, %u : tensor<7xf64>, tensor<7xf64>, tensor<7xi8>
}

// -----

!q = tensor<4x2x!quant.uniform<i8:f32, 0.2:5>>
!x = tensor<4x3x!quant.uniform<i8:f32, 0.03:-7>>

// On codes: where the encoding stays.
// CHECK-LABEL: func.func @codes
func.func @codes(%x: !x, %y: !q) -> (!q, !q) {
  // CHECK: [[L:%[^ ]+]] = nn.linear %x, {{.*}} {activation = #nn.clamp<0.000000e+00 : f32, 6.000000e+00 : f32>}
  // CHECK-NEXT: [[A:%[^ ]+]] = nn.add %y, [[L]] {activation = #nn.clamp<0.000000e+00 : f32, 9.000000e+00 : f32>}
  // CHECK-NEXT: func.return [[L]], [[A]]
  %w = nn.constant dense<[[5, -7, 127], [-2, 88, 1]]> : tensor<2x3x!quant.uniform<i8:f32, 0.01>>
  %l = nn.linear %x, %w : (!x, tensor<2x3x!quant.uniform<i8:f32, 0.01>>) -> !q
  %c = nn.clamp %l {min = 0.0 : f32, max = 6.0 : f32} : !q -> !q
  %a = nn.add %y, %c {activation = #nn.clamp<-3.0 : f32, 9.0 : f32>} : (!q, !q) -> !q
  %r = nn.relu %a : !q -> !q
  func.return %c, %r : !q, !q
}

// Must not fuse on codes: another use; another encoding; per channel; another recipe; a producer that may make NaN.
// CHECK-LABEL: func.func @codes_keep
func.func @codes_keep(%x: !q, %z: tensor<4x2x!quant.uniform<i8:f32:1, {0.2, 0.3}>>, %h: tensor<4x2x!quant.uniform<i8:f32, 1.0e+30>>) -> (!q, !q, tensor<4x2x!quant.uniform<i8:f32, 0.2:4>>, tensor<4x2x!quant.uniform<i8:f32:1, {0.2, 0.3}>>, !q, !q, !q) {
  // CHECK-COUNT-6: nn.relu
  %a = nn.add %x, %x : (!q, !q) -> !q
  // expected-remark@+1 {{FuseCodes refused 'nn.relu': the result of nn.add has other uses}}
  %b = nn.relu %a : !q -> !q
  %c = nn.mul %x, %x : (!q, !q) -> !q
  // expected-remark@+1 {{the codes between the bounds change}}
  %d = nn.relu %c : !q -> tensor<4x2x!quant.uniform<i8:f32, 0.2:4>>
  %e = nn.mul %z, %z : (tensor<4x2x!quant.uniform<i8:f32:1, {0.2, 0.3}>>, tensor<4x2x!quant.uniform<i8:f32:1, {0.2, 0.3}>>) -> tensor<4x2x!quant.uniform<i8:f32:1, {0.2, 0.3}>>
  // expected-remark@+1 {{the codes between the bounds change}}
  %f = nn.relu %e : tensor<4x2x!quant.uniform<i8:f32:1, {0.2, 0.3}>> -> tensor<4x2x!quant.uniform<i8:f32:1, {0.2, 0.3}>>
  %g = nn.sub %x, %b {recipe = f32} : (!q, !q) -> !q
  // expected-remark@+1 {{the bounds may quantize otherwise by another recipe}}
  %i = nn.relu %g : !q -> !q
  %j = nn.div %x, %b : (!q, !q) -> !q
  // expected-remark@+1 {{nn.div may make NaN}}
  %k = nn.relu %j : !q -> !q
  %l = nn.sub %h, %h : (tensor<4x2x!quant.uniform<i8:f32, 1.0e+30>>, tensor<4x2x!quant.uniform<i8:f32, 1.0e+30>>) -> !q
  // expected-remark@+1 {{nn.sub may make NaN}}
  %m = nn.relu %l : !q -> !q
  func.return %a, %b, %d, %f, %i, %k, %m : !q, !q, tensor<4x2x!quant.uniform<i8:f32, 0.2:4>>, tensor<4x2x!quant.uniform<i8:f32:1, {0.2, 0.3}>>, !q, !q, !q
}

// -----

// Must not merge: 0.0 below and -0.0 above, no clamp gives -0.0 for all.
func.func @zeros(%x: tensor<7xf32>) -> tensor<7xf32> {
  %d = nn.clamp %x {min = 0.0 : f32, max = 1.0 : f32} : tensor<7xf32> -> tensor<7xf32>
  // expected-remark@+1 {{the merged bounds are both zero}}
  %e = nn.clamp %d {min = -2.0 : f32, max = -0.0 : f32} : tensor<7xf32> -> tensor<7xf32>
  func.return %e : tensor<7xf32>
}

// -----

!p = tensor<7x!quant.uniform<u8:f32, 0.0235:114>>
// Must not merge: the first clamp rounds to codes, the second gives reals.
func.func @from_codes(%x: !p) -> tensor<7xf32> {
  %r = nn.relu %x : !p -> !p
  // expected-remark@+1 {{reads codes}}
  %c = nn.clamp %r {min = -1.0 : f32, max = 6.0 : f32} : !p -> tensor<7xf32>
  func.return %c : tensor<7xf32>
}

// -----

func.func @error(%x: tensor<7xf32>) -> tensor<7xf32> {
  // expected-error@+1 {{clamp bounds must not be NaN}}
  %e = nn.clamp %x {min = 0x7FC00000 : f32, max = 0.0 : f32} : tensor<7xf32> -> tensor<7xf32>
  func.return %e : tensor<7xf32>
}
