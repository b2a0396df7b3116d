// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p remove-identities --verify-rewrites --split-input-file --explain --verify-diagnostics | filecheck %s

!t = tensor<2x3x5x7xf32>
!q = tensor<2x3x5x7x!quant.uniform<i8:f32, 0.5:3>>

// CHECK-LABEL: func.func @movement
func.func @movement(%x: !t) -> !t {
  // CHECK-NEXT: [[R:%[^ ]+]] = nn.relu %x
  // CHECK-NEXT: func.return [[R]]
  %a = nn.relu %x : !t -> !t
  %b = nn.reshape %a : !t -> !t
  %c = nn.permute %b {dims = array<i64: 0, 1, 2, 3>} : !t -> !t
  %d = nn.expand %c : !t -> !t
  %e = nn.slice %d {dim = 2, start = 0, end = 5, step = 1} : !t -> !t
  %f = nn.pad %e {low = array<i64: 0, 0, 0, 0>, high = array<i64: 0, 0, 0, 0>, value = 1.0 : f32} : !t -> !t
  %g = nn.cat %f {dim = 1} : (!t) -> !t
  %h = nn.cast %g : !t -> !t
  %i = nn.max_pool2d %h {kernel_size = array<i64: 1, 1>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, ceil_mode = false} : !t -> !t
  %l = nn.clamp %i {min = 0xFF800000 : f32, max = 0x7F800000 : f32} : !t -> !t
  func.return %l : !t
}

// CHECK-LABEL: func.func @arithmetic
func.func @arithmetic(%x: !t) -> !t {
  // CHECK-NEXT: [[R:%[^ ]+]] = nn.relu %x
  // CHECK-NEXT: func.return [[R]]
  %one = nn.constant dense<1.0> : tensor<f32>
  %ones = nn.constant dense<[[[1.0]], [[1.0]], [[1.0]]]> : tensor<3x1x1xf32>
  %zero = nn.constant dense<0.0> : tensor<f32>
  %minus = nn.constant dense<-0.0> : tensor<f32>
  %a = nn.relu %x : !t -> !t
  %b = nn.mul %a, %ones : (!t, tensor<3x1x1xf32>) -> !t
  %c = nn.mul %one, %b : (tensor<f32>, !t) -> !t
  %d = nn.div %c, %one : (!t, tensor<f32>) -> !t
  %e = nn.add %d, %minus : (!t, tensor<f32>) -> !t
  %f = nn.sub %e, %zero : (!t, tensor<f32>) -> !t
  func.return %f : !t
}

// CHECK-LABEL: func.func @codes
func.func @codes(%q: !q) -> !q {
  // CHECK-NEXT: [[R:%[^ ]+]] = nn.relu %q
  // CHECK-NEXT: func.return [[R]]
  %a = nn.relu %q : !q -> !q
  %b = quant.requantize %a : !q -> !q
  %e = nn.avg_pool2d %b {kernel_size = array<i64: 1, 1>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, ceil_mode = true, count_include_pad = true} : !q -> !q
  %f = nn.adaptive_avg_pool2d %e {output_size = array<i64: 5, 7>} : !q -> !q
  %c = quant.cast_storage %f : !q to tensor<2x3x5x7xi8>
  %d = quant.cast_storage %c : tensor<2x3x5x7xi8> to !q
  func.return %d : !q
}

// Relu and clamp of codes: gone when no code lies outside of the bounds.
// CHECK-LABEL: func.func @bounds
func.func @bounds(%x: tensor<7x!quant.uniform<i8:f32, 0.5:-128>>, %y: tensor<7x!quant.uniform<i8<-127:127>:f32, 0.5>>, %z: tensor<7x!quant.uniform<u8:f32, 0.5>>, %w: tensor<7x!quant.uniform<i16:f32, 0.5:-32768>>) -> (tensor<7x!quant.uniform<i8:f32, 0.5:-128>>, tensor<7x!quant.uniform<i8<-127:127>:f32, 0.5>>, tensor<7x!quant.uniform<u8:f32, 0.5>>, tensor<7x!quant.uniform<i16:f32, 0.5:-32768>>) {
  // CHECK-NEXT: nn.neg
  // CHECK-NEXT: nn.neg
  // CHECK-NEXT: [[R:%[^ ]+]] = nn.relu {{.*}}i8<-127:127>
  // CHECK-NEXT: nn.neg
  // CHECK-NEXT: nn.clamp
  // CHECK-NEXT: nn.neg
  // CHECK-NEXT: func.return
  %a = nn.neg %x : tensor<7x!quant.uniform<i8:f32, 0.5:-128>> -> tensor<7x!quant.uniform<i8:f32, 0.5:-128>>
  %b = nn.relu %a : tensor<7x!quant.uniform<i8:f32, 0.5:-128>> -> tensor<7x!quant.uniform<i8:f32, 0.5:-128>>
  %c = nn.neg %y : tensor<7x!quant.uniform<i8<-127:127>:f32, 0.5>> -> tensor<7x!quant.uniform<i8<-127:127>:f32, 0.5>>
  %d = nn.relu %c : tensor<7x!quant.uniform<i8<-127:127>:f32, 0.5>> -> tensor<7x!quant.uniform<i8<-127:127>:f32, 0.5>>
  %e = nn.neg %z : tensor<7x!quant.uniform<u8:f32, 0.5>> -> tensor<7x!quant.uniform<u8:f32, 0.5>>
  %f = nn.clamp %e {min = 0.0 : f32, max = 127.0 : f32} : tensor<7x!quant.uniform<u8:f32, 0.5>> -> tensor<7x!quant.uniform<u8:f32, 0.5>>
  %g = nn.clamp %f {min = 0.0 : f32, max = 128.0 : f32} : tensor<7x!quant.uniform<u8:f32, 0.5>> -> tensor<7x!quant.uniform<u8:f32, 0.5>>
  %h = nn.neg %w : tensor<7x!quant.uniform<i16:f32, 0.5:-32768>> -> tensor<7x!quant.uniform<i16:f32, 0.5:-32768>>
  %i = nn.relu %h : tensor<7x!quant.uniform<i16:f32, 0.5:-32768>> -> tensor<7x!quant.uniform<i16:f32, 0.5:-32768>>
  func.return %b, %d, %g, %i : tensor<7x!quant.uniform<i8:f32, 0.5:-128>>, tensor<7x!quant.uniform<i8<-127:127>:f32, 0.5>>, tensor<7x!quant.uniform<u8:f32, 0.5>>, tensor<7x!quant.uniform<i16:f32, 0.5:-32768>>
}

// Must not go: 0.0 added (it turns -0.0 into 0.0), 1 / x, 0 - x, an activation, a broadcast, a divisor, another encoding.
// CHECK-LABEL: func.func @keep
func.func @keep(%x: !t, %q: !q, %s: tensor<5x7xf32>) -> (!t, tensor<2x3x5x7x!quant.uniform<i8:f32, 0.5:4>>, !t) {
  // CHECK: nn.add
  // CHECK-NEXT: nn.div
  // CHECK-NEXT: nn.sub
  // CHECK-NEXT: nn.mul
  // CHECK-NEXT: nn.permute
  // CHECK-NEXT: nn.avg_pool2d
  // CHECK-NEXT: quant.requantize
  // CHECK-NEXT: nn.mul
  %one = nn.constant dense<1.0> : tensor<f32>
  %zero = nn.constant dense<0.0> : tensor<f32>
  %many = nn.constant dense<1.0> : !t
  %a = nn.add %x, %zero : (!t, tensor<f32>) -> !t
  %b = nn.div %one, %a : (tensor<f32>, !t) -> !t
  %c = nn.sub %zero, %b : (tensor<f32>, !t) -> !t
  %d = nn.mul %c, %one {activation = #nn.relu} : (!t, tensor<f32>) -> !t
  %e = nn.permute %d {dims = array<i64: 0, 1, 3, 2>} : !t -> tensor<2x3x7x5xf32>
  %f = nn.avg_pool2d %e {kernel_size = array<i64: 1, 1>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, ceil_mode = false, count_include_pad = true, divisor_override = 2 : i64} : tensor<2x3x7x5xf32> -> tensor<2x3x7x5xf32>
  %g = quant.requantize %q : !q -> tensor<2x3x5x7x!quant.uniform<i8:f32, 0.5:4>>
  %h = nn.mul %s, %many : (tensor<5x7xf32>, !t) -> !t
  %i = nn.permute %f {dims = array<i64: 0, 1, 3, 2>} : tensor<2x3x7x5xf32> -> !t
  func.return %i, %g, %h : !t, tensor<2x3x5x7x!quant.uniform<i8:f32, 0.5:4>>, !t
}

// The average of one float starts its sum at 0.0: -0.0 becomes 0.0.
// CHECK-LABEL: func.func @average
func.func @average(%x: !t) -> !t {
  // CHECK: nn.avg_pool2d
  // CHECK: nn.adaptive_avg_pool2d
  %r = nn.relu %x : !t -> !t
  %j = nn.avg_pool2d %r {kernel_size = array<i64: 1, 1>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, ceil_mode = true, count_include_pad = true} : !t -> !t
  %k = nn.adaptive_avg_pool2d %j {output_size = array<i64: 5, 7>} : !t -> !t
  func.return %k : !t
}

// Square: "the same sizes" is not the identity.
// CHECK-LABEL: func.func @square
func.func @square(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // CHECK-NEXT: nn.permute
  %p = nn.permute %x {dims = array<i64: 1, 0>} : tensor<4x4xf32> -> tensor<4x4xf32>
  func.return %p : tensor<4x4xf32>
}

// An unknown dimension equals nothing, not even another unknown one.
// CHECK-LABEL: func.func @unknown
func.func @unknown(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %r = nn.relu %x : tensor<?x3xf32> -> tensor<?x3xf32>
  // CHECK: nn.expand
  // expected-remark@+1 {{unknown dimensions are not known to be equal}}
  %e = nn.expand %r : tensor<?x3xf32> -> tensor<?x3xf32>
  func.return %e : tensor<?x3xf32>
}

// A function does not return its argument as it came.
// CHECK-LABEL: func.func @argument
func.func @argument(%x: !t) -> !t {
  // CHECK-NEXT: nn.reshape
  // expected-remark@+1 {{the function would return its argument: the copy stays}}
  %b = nn.reshape %x : !t -> !t
  func.return %b : !t
}

// -----

func.func @error(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  // expected-error@+1 {{dims [0, 0] are no permutation}}
  %p = nn.permute %x {dims = array<i64: 0, 0>} : tensor<4x5xf32> -> tensor<4x5xf32>
  func.return %p : tensor<4x5xf32>
}
