// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p compose-reshapes --verify-rewrites --split-input-file --explain --verify-diagnostics | filecheck %s

// CHECK-LABEL: func.func @chain
func.func @chain(%x: tensor<2x3x5xf32>) -> (tensor<30xf32>, tensor<2x3x5xf32>) {
  // CHECK-NEXT: [[A:%[^ ]+]] = nn.reshape %x : tensor<2x3x5xf32> -> tensor<30xf32>
  // CHECK-NEXT: [[N:%[^ ]+]] = nn.neg %x
  // CHECK-NEXT: func.return [[A]], [[N]]
  %a = nn.reshape %x : tensor<2x3x5xf32> -> tensor<6x5xf32>
  %b = nn.reshape %a : tensor<6x5xf32> -> tensor<3x10xf32>
  %c = nn.reshape %b : tensor<3x10xf32> -> tensor<30xf32>
  %n = nn.neg %x : tensor<2x3x5xf32> -> tensor<2x3x5xf32>
  %d = nn.reshape %n : tensor<2x3x5xf32> -> tensor<30xf32>
  %e = nn.reshape %d : tensor<30xf32> -> tensor<2x3x5xf32>
  func.return %c, %e : tensor<30xf32>, tensor<2x3x5xf32>
}

// A middle value that is used elsewhere stays for that use. A dimension of 0 is a size like any other.
// CHECK-LABEL: func.func @middle
func.func @middle(%x: tensor<2x6xf32>, %z: tensor<0x4xf32>) -> (tensor<12xf32>, tensor<3x4xf32>, tensor<2x0xf32>) {
  // CHECK-NEXT: [[M:%[^ ]+]] = nn.reshape %x : tensor<2x6xf32> -> tensor<12xf32>
  // CHECK-NEXT: [[R:%[^ ]+]] = nn.reshape %x : tensor<2x6xf32> -> tensor<3x4xf32>
  // CHECK-NEXT: [[Z:%[^ ]+]] = nn.reshape %z : tensor<0x4xf32> -> tensor<2x0xf32>
  // CHECK-NEXT: func.return [[M]], [[R]], [[Z]]
  %m = nn.reshape %x : tensor<2x6xf32> -> tensor<12xf32>
  %r = nn.reshape %m : tensor<12xf32> -> tensor<3x4xf32>
  %y = nn.reshape %z : tensor<0x4xf32> -> tensor<0xf32>
  %w = nn.reshape %y : tensor<0xf32> -> tensor<2x0xf32>
  func.return %m, %r, %w : tensor<12xf32>, tensor<3x4xf32>, tensor<2x0xf32>
}

// Not across a permute.
// CHECK-LABEL: func.func @permute
func.func @permute(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  // CHECK-COUNT-2: nn.reshape
  %a = nn.reshape %x : tensor<2x3xf32> -> tensor<3x2xf32>
  %p = nn.permute %a {dims = array<i64: 1, 0>} : tensor<3x2xf32> -> tensor<2x3xf32>
  %b = nn.reshape %p : tensor<2x3xf32> -> tensor<6xf32>
  func.return %b : tensor<6xf32>
}

// One unknown dimension follows from the number of elements, two do not.
// CHECK-LABEL: func.func @unknown
func.func @unknown(%x: tensor<?x6xf32>) -> (tensor<?x2x3xf32>, tensor<?x?xf32>) {
  // CHECK-NEXT: [[A:%[^ ]+]] = nn.reshape %x : tensor<?x6xf32> -> tensor<?x2x3xf32>
  // CHECK-COUNT-2: nn.reshape
  %a = nn.reshape %x : tensor<?x6xf32> -> tensor<?xf32>
  %b = nn.reshape %a : tensor<?xf32> -> tensor<?x2x3xf32>
  %c = nn.reshape %x : tensor<?x6xf32> -> tensor<?x3xf32>
  // expected-remark@+1 {{ComposeReshapes refused 'nn.reshape': the result has more than one unknown dimension}}
  %d = nn.reshape %c : tensor<?x3xf32> -> tensor<?x?xf32>
  func.return %b, %d : tensor<?x2x3xf32>, tensor<?x?xf32>
}

// CHECK-LABEL: func.func @per_channel
func.func @per_channel(%x: tensor<2x6x!quant.uniform<i8:f32:0, {0.5, 0.25}>>) -> tensor<2x2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>> {
  // CHECK-COUNT-2: nn.reshape
  %a = nn.reshape %x : tensor<2x6x!quant.uniform<i8:f32:0, {0.5, 0.25}>> -> tensor<2x3x2x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  // expected-remark@+1 {{the tensor is quantized per channel}}
  %b = nn.reshape %a : tensor<2x3x2x!quant.uniform<i8:f32:0, {0.5, 0.25}>> -> tensor<2x2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  func.return %b : tensor<2x2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
}

// -----

func.func @error(%x: tensor<2x3xf32>) -> tensor<5xf32> {
  // expected-error@+1 {{cannot reshape 6 elements to [5]}}
  %a = nn.reshape %x : tensor<2x3xf32> -> tensor<5xf32>
  func.return %a : tensor<5xf32>
}
