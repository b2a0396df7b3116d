// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p fuse-qdq --verify-rewrites --split-input-file --explain --verify-diagnostics | filecheck %s

!x = tensor<2x3x5x7x!quant.uniform<i8:f32, 0.03:-7>>
!xf = tensor<2x3x5x7xf32>
!w = tensor<2x3x1x1x!quant.uniform<i8<-127:127>:f32:0, {0.5, 0.25}>>
!wf = tensor<2x3x1x1xf32>
!y = tensor<2x2x5x7x!quant.uniform<i8:f32, 0.2:5>>
!z = tensor<2x2x5x7x!quant.uniform<u8:f32, 0.1:9>>
!yf = tensor<2x2x5x7xf32>

// CHECK-LABEL: func.func @conv
func.func @conv(%x: !x) -> !y {
  // CHECK-NEXT: [[W:%[^ ]+]] = nn.constant
  // CHECK-NEXT: [[B:%[^ ]+]] = nn.constant dense<[0.25, -0.5]>
  // CHECK-NEXT: [[Q:%[^ ]+]] = nn.conv2d %x, [[W]] bias([[B]]) {{{.*}}groups = 1 : i64} : {{.*}} -> tensor<2x2x5x7x!quant.uniform<i8:f32, 0.2:5>>
  // CHECK-NEXT: func.return [[Q]]
  %w = nn.constant dense<[[[[5]], [[-7]], [[127]]], [[[-2]], [[88]], [[1]]]]> : !w
  %b = nn.constant dense<[0.25, -0.5]> : tensor<2xf32>
  %d = quant.dequantize %x : !x -> !xf
  %v = quant.dequantize %w : !w -> !wf
  %c = nn.conv2d %d, %v bias(%b) {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!xf, !wf, tensor<2xf32>) -> !yf
  %q = quant.quantize %c : !yf -> !y
  func.return %q : !y
}

// The add of a dequantized value of the same shape and the activation go in.
// CHECK-LABEL: func.func @residual
func.func @residual(%x: !x, %r: !z) -> !y {
  // CHECK-NEXT: [[W:%[^ ]+]] = nn.constant
  // CHECK-NEXT: [[Q:%[^ ]+]] = nn.conv2d %x, [[W]] residual(%r) {{{.*}}activation = #nn.clamp<0.000000e+00 : f32, 6.000000e+00 : f32>}
  // CHECK-NEXT: func.return [[Q]]
  %w = nn.constant dense<[[[[5]], [[-7]], [[127]]], [[[-2]], [[88]], [[1]]]]> : !w
  %d = quant.dequantize %x : !x -> !xf
  %v = quant.dequantize %w : !w -> !wf
  %e = quant.dequantize %r : !z -> !yf
  %c = nn.conv2d %d, %v {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!xf, !wf) -> !yf
  %a = nn.add %e, %c : (!yf, !yf) -> !yf
  %l = nn.clamp %a {min = 0.0 : f32, max = 6.0 : f32} : !yf -> !yf
  %q = quant.quantize %l : !yf -> !y
  func.return %q : !y
}

// No quantize behind it: the result is float, and the float ops behind it stay.
// CHECK-LABEL: func.func @float_result
func.func @float_result(%x: !x) -> !yf {
  // CHECK-NEXT: [[W:%[^ ]+]] = nn.constant
  // CHECK-NEXT: [[C:%[^ ]+]] = nn.conv2d %x, [[W]] {{{.*}}activation = #nn.relu} : {{.*}} -> tensor<2x2x5x7xf32>
  // CHECK-NEXT: nn.sigmoid [[C]]
  %w = nn.constant dense<[[[[5]], [[-7]], [[127]]], [[[-2]], [[88]], [[1]]]]> : !w
  %d = quant.dequantize %x : !x -> !xf
  %v = quant.dequantize %w : !w -> !wf
  %c = nn.conv2d %d, %v {activation = #nn.relu, stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!xf, !wf) -> !yf
  %s = nn.sigmoid %c : !yf -> !yf
  func.return %s : !yf
}

// CHECK-LABEL: func.func @linear
func.func @linear(%x: tensor<4x3x!quant.uniform<u8:f32, 0.03:100>>) -> tensor<4x2x!quant.uniform<u8:f32, 0.07:30>> {
  // CHECK-NEXT: [[W:%[^ ]+]] = nn.constant
  // CHECK-NEXT: [[B:%[^ ]+]] = nn.constant dense<[700, -300]> : tensor<2x!quant.uniform<i32:f32, 0.0003>>
  // CHECK-NEXT: nn.linear %x, [[W]] bias([[B]]) {activation = #nn.relu}
  // CHECK-NEXT: func.return
  %w = nn.constant dense<[[5, -7, 127], [-2, 88, 1]]> : tensor<2x3x!quant.uniform<i8:f32, 0.01>>
  %b = nn.constant dense<[700, -300]> : tensor<2x!quant.uniform<i32:f32, 0.0003>>
  %d = quant.dequantize %x : tensor<4x3x!quant.uniform<u8:f32, 0.03:100>> -> tensor<4x3xf32>
  %v = quant.dequantize %w : tensor<2x3x!quant.uniform<i8:f32, 0.01>> -> tensor<2x3xf32>
  %c = quant.dequantize %b : tensor<2x!quant.uniform<i32:f32, 0.0003>> -> tensor<2xf32>
  %l = nn.linear %d, %v bias(%c) : (tensor<4x3xf32>, tensor<2x3xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  %r = nn.relu %l : tensor<4x2xf32> -> tensor<4x2xf32>
  %q = quant.quantize %r : tensor<4x2xf32> -> tensor<4x2x!quant.uniform<u8:f32, 0.07:30>>
  func.return %q : tensor<4x2x!quant.uniform<u8:f32, 0.07:30>>
}

// CHECK-LABEL: func.func @matmul
func.func @matmul(%x: tensor<4x3x!quant.uniform<u8:f32, 0.03:100>>, %y: tensor<3x5x!quant.uniform<i8:f32, 0.01>>) -> (tensor<4x5x!quant.uniform<u8:f32, 0.07:30>>, tensor<4x5xf32>) {
  // CHECK-NEXT: nn.matmul %x, %y : {{.*}} -> tensor<4x5x!quant.uniform<u8:f32, 0.07:30>>
  // CHECK-NEXT: nn.matmul %x, %y : {{.*}} -> tensor<4x5xf32>
  // CHECK-NEXT: func.return
  %d = quant.dequantize %x : tensor<4x3x!quant.uniform<u8:f32, 0.03:100>> -> tensor<4x3xf32>
  %e = quant.dequantize %y : tensor<3x5x!quant.uniform<i8:f32, 0.01>> -> tensor<3x5xf32>
  %m = nn.matmul %d, %e : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %q = quant.quantize %m : tensor<4x5xf32> -> tensor<4x5x!quant.uniform<u8:f32, 0.07:30>>
  %n = nn.matmul %d, %e : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  func.return %q, %n : tensor<4x5x!quant.uniform<u8:f32, 0.07:30>>, tensor<4x5xf32>
}

// Two activations with zero points, the product of batches; the left one transposed.
// CHECK-LABEL: func.func @attention
func.func @attention(%x: tensor<2x1x3x4x!quant.uniform<u8:f32, 0.03:100>>, %y: tensor<5x3x6x!quant.uniform<i8:f32, 0.01:7>>) -> (tensor<2x5x4x6x!quant.uniform<i8:f32, 0.07:3>>, tensor<2x5x4x6xf32>) {
  // CHECK-NEXT: [[T:%[^ ]+]] = nn.permute %x
  // CHECK-NEXT: nn.matmul [[T]], %y : {{.*}} -> tensor<2x5x4x6x!quant.uniform<i8:f32, 0.07:3>>
  // CHECK-NEXT: nn.matmul [[T]], %y : {{.*}} -> tensor<2x5x4x6xf32>
  // CHECK-NEXT: func.return
  %t = nn.permute %x {dims = array<i64: 0, 1, 3, 2>} : tensor<2x1x3x4x!quant.uniform<u8:f32, 0.03:100>> -> tensor<2x1x4x3x!quant.uniform<u8:f32, 0.03:100>>
  %d = quant.dequantize %t : tensor<2x1x4x3x!quant.uniform<u8:f32, 0.03:100>> -> tensor<2x1x4x3xf32>
  %e = quant.dequantize %y : tensor<5x3x6x!quant.uniform<i8:f32, 0.01:7>> -> tensor<5x3x6xf32>
  %m = nn.matmul %d, %e : (tensor<2x1x4x3xf32>, tensor<5x3x6xf32>) -> tensor<2x5x4x6xf32>
  %q = quant.quantize %m : tensor<2x5x4x6xf32> -> tensor<2x5x4x6x!quant.uniform<i8:f32, 0.07:3>>
  %n = nn.matmul %d, %e : (tensor<2x1x4x3xf32>, tensor<5x3x6xf32>) -> tensor<2x5x4x6xf32>
  func.return %q, %n : tensor<2x5x4x6x!quant.uniform<i8:f32, 0.07:3>>, tensor<2x5x4x6xf32>
}

// Ops that move several operands requantize those whose encoding differs, and quantize constants.
// CHECK-LABEL: func.func @choices
func.func @choices(%x: tensor<4x5x!quant.uniform<u8:f32, 0.03:100>>, %y: tensor<4x5x!quant.uniform<i8:f32, 0.01:7>>, %m: tensor<4x5xi1>, %i: tensor<2xi64>) -> (tensor<4x5x!quant.uniform<i8:f32, 0.01:7>>, tensor<4x5x!quant.uniform<i8:f32, 0.01:7>>, tensor<4x5x!quant.uniform<i8:f32, 0.02:7>>) {
  // CHECK: [[X:%[^ ]+]] = quant.requantize %x : {{.*}} -> tensor<4x5x!quant.uniform<i8:f32, 0.01:7>>
  // CHECK-NEXT: [[A:%[^ ]+]] = nn.select %m, [[X]], %y
  // CHECK: [[Z:%[^ ]+]] = quant.requantize %x
  // CHECK-NEXT: [[C:%[^ ]+]] = quant.quantize {{.*}} : tensor<1x5xf32>
  // CHECK-NEXT: [[B:%[^ ]+]] = nn.insert_slice [[C]] into [[Z]]
  // CHECK-NEXT: [[S:%[^ ]+]] = nn.scan "max", %y
  // CHECK-NEXT: [[R:%[^ ]+]] = quant.requantize [[S]]
  // CHECK-NEXT: func.return [[A]], [[B]], [[R]]
  %c = nn.constant dense<[[0.5, 1.0, -0.7, 1.1, -100.0]]> : tensor<1x5xf32>
  %d = quant.dequantize %x : tensor<4x5x!quant.uniform<u8:f32, 0.03:100>> -> tensor<4x5xf32>
  %e = quant.dequantize %y : tensor<4x5x!quant.uniform<i8:f32, 0.01:7>> -> tensor<4x5xf32>
  %a = nn.select %m, %d, %e : (tensor<4x5xi1>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
  %q = quant.quantize %a : tensor<4x5xf32> -> tensor<4x5x!quant.uniform<i8:f32, 0.01:7>>
  %b = nn.insert_slice %c into %d {dim = 0, start = 2, step = 1} : tensor<1x5xf32> into tensor<4x5xf32> -> tensor<4x5xf32>
  %r = quant.quantize %b : tensor<4x5xf32> -> tensor<4x5x!quant.uniform<i8:f32, 0.01:7>>
  %s = nn.scan "max", %e {dim = 1} : tensor<4x5xf32> -> tensor<4x5xf32>
  %t = quant.quantize %s : tensor<4x5xf32> -> tensor<4x5x!quant.uniform<i8:f32, 0.02:7>>
  func.return %q, %r, %t : tensor<4x5x!quant.uniform<i8:f32, 0.01:7>>, tensor<4x5x!quant.uniform<i8:f32, 0.01:7>>, tensor<4x5x!quant.uniform<i8:f32, 0.02:7>>
}

// Ops that compute in reals read and write codes, at one end or both.
// CHECK-LABEL: func.func @in_reals
func.func @in_reals(%x: tensor<4x5x!quant.uniform<u8:f32, 0.03:100>>, %f: tensor<4x5xf32>) -> (tensor<4x5x!quant.uniform<i8:f32, 0.01:7>>, tensor<4x5xf32>, tensor<4x5x!quant.uniform<i8:f32, 0.02:7>>, tensor<4x1x!quant.uniform<i8:f32, 0.02:7>>, tensor<4x5x!quant.uniform<i8:f32, 0.02:7>>) {
  // CHECK-NEXT: [[A:%[^ ]+]] = nn.softmax %x {{.*}} -> tensor<4x5x!quant.uniform<i8:f32, 0.01:7>>
  // CHECK-NEXT: [[B:%[^ ]+]] = nn.layer_norm %x {{.*}} -> tensor<4x5xf32>
  // CHECK-NEXT: [[C:%[^ ]+]] = nn.scan "add", %f {{.*}} -> tensor<4x5x!quant.uniform<i8:f32, 0.02:7>>
  // CHECK-NEXT: [[D:%[^ ]+]] = nn.prod %x {{.*}} -> tensor<4x1x!quant.uniform<i8:f32, 0.02:7>>
  // CHECK-NEXT: [[E:%[^ ]+]] = nn.scan "mul", %x {{.*}} -> tensor<4x5xf32>
  // CHECK-NEXT: [[F:%[^ ]+]] = quant.quantize [[E]] {recipe = f32}
  // CHECK-NEXT: func.return [[A]], [[B]], [[C]], [[D]], [[F]]
  %d = quant.dequantize %x : tensor<4x5x!quant.uniform<u8:f32, 0.03:100>> -> tensor<4x5xf32>
  %a = nn.softmax %d {dim = 1} : tensor<4x5xf32> -> tensor<4x5xf32>
  %q = quant.quantize %a : tensor<4x5xf32> -> tensor<4x5x!quant.uniform<i8:f32, 0.01:7>>
  %b = nn.layer_norm %d {normalized_shape = array<i64: 5>, eps = 1.0e-05 : f64} : (tensor<4x5xf32>) -> tensor<4x5xf32>
  %c = nn.scan "add", %f {dim = 1} : tensor<4x5xf32> -> tensor<4x5xf32>
  %r = quant.quantize %c : tensor<4x5xf32> -> tensor<4x5x!quant.uniform<i8:f32, 0.02:7>>
  %p = nn.prod %d {dim = array<i64: 1>, keepdim = true} : tensor<4x5xf32> -> tensor<4x1xf32>
  %s = quant.quantize %p : tensor<4x1xf32> -> tensor<4x1x!quant.uniform<i8:f32, 0.02:7>>
  %e = nn.scan "mul", %d {dim = 0} : tensor<4x5xf32> -> tensor<4x5xf32>
  // expected-remark@+1 {{nn.scan quantizes by the default recipe only}}
  %t = quant.quantize %e {recipe = f32} : tensor<4x5xf32> -> tensor<4x5x!quant.uniform<i8:f32, 0.02:7>>
  func.return %q, %b, %r, %s, %t : tensor<4x5x!quant.uniform<i8:f32, 0.01:7>>, tensor<4x5xf32>, tensor<4x5x!quant.uniform<i8:f32, 0.02:7>>, tensor<4x1x!quant.uniform<i8:f32, 0.02:7>>, tensor<4x5x!quant.uniform<i8:f32, 0.02:7>>
}

// Elementwise ops and reductions beside floats read and write codes; a relu goes in, and the recipe.
// CHECK-LABEL: func.func @beside_floats
func.func @beside_floats(%x: tensor<4x5x!quant.uniform<u8:f32, 0.03:100>>, %f: tensor<4x5xf32>, %m: tensor<5xi1>) -> (tensor<4x5x!quant.uniform<i8:f32, 0.01:7>>, tensor<4x5x!quant.uniform<i8:f32, 0.02:7>>, tensor<4x5xf32>, tensor<4x5x!quant.uniform<i8:f32, 0.02:7>>, tensor<4x!quant.uniform<i8:f32, 0.02:7>>, tensor<4xf32>) {
  // CHECK: nn.gelu %f {{.*}}recipe = f32{{.*}} : tensor<4x5xf32> -> tensor<4x5x!quant.uniform<i8:f32, 0.01:7>>
  // CHECK: nn.add %x, %f {activation = #nn.relu} : {{.*}} -> tensor<4x5x!quant.uniform<i8:f32, 0.02:7>>
  // CHECK: nn.mul %x, %f : {{.*}} -> tensor<4x5xf32>
  // CHECK: nn.select %m, %f, %x : {{.*}} -> tensor<4x5x!quant.uniform<i8:f32, 0.02:7>>
  // CHECK: nn.mean %f {{.*}} -> tensor<4x!quant.uniform<i8:f32, 0.02:7>>
  // A sum of codes would be another number.
  // CHECK: [[D:%[^ ]+]] = quant.dequantize %x
  // CHECK: nn.sum [[D]]
  %g = nn.gelu %f {approximate = "none"} : tensor<4x5xf32> -> tensor<4x5xf32>
  // expected-remark@+1 {{operand is not dequantized}}
  %q = quant.quantize %g {recipe = f32} : tensor<4x5xf32> -> tensor<4x5x!quant.uniform<i8:f32, 0.01:7>>
  %d = quant.dequantize %x : tensor<4x5x!quant.uniform<u8:f32, 0.03:100>> -> tensor<4x5xf32>
  %a = nn.add %d, %f : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
  %b = nn.relu %a : tensor<4x5xf32> -> tensor<4x5xf32>
  // expected-remark@+1 {{operand 1 is not dequantized}}
  %r = quant.quantize %b : tensor<4x5xf32> -> tensor<4x5x!quant.uniform<i8:f32, 0.02:7>>
  %c = nn.mul %d, %f : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
  %s = nn.select %m, %f, %d : (tensor<5xi1>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
  // expected-remark@+1 {{operand 0 is not dequantized}}
  %t = quant.quantize %s : tensor<4x5xf32> -> tensor<4x5x!quant.uniform<i8:f32, 0.02:7>>
  %n = nn.mean %f {dim = array<i64: 1>, keepdim = false} : tensor<4x5xf32> -> tensor<4xf32>
  // expected-remark@+1 {{operand is not dequantized}}
  %u = quant.quantize %n : tensor<4xf32> -> tensor<4x!quant.uniform<i8:f32, 0.02:7>>
  %e = quant.dequantize %x : tensor<4x5x!quant.uniform<u8:f32, 0.03:100>> -> tensor<4x5xf32>
  %v = nn.sum %e {dim = array<i64: 1>, keepdim = false} : tensor<4x5xf32> -> tensor<4xf32>
  func.return %q, %r, %c, %t, %u, %v : tensor<4x5x!quant.uniform<i8:f32, 0.01:7>>, tensor<4x5x!quant.uniform<i8:f32, 0.02:7>>, tensor<4x5xf32>, tensor<4x5x!quant.uniform<i8:f32, 0.02:7>>, tensor<4x!quant.uniform<i8:f32, 0.02:7>>, tensor<4xf32>
}

// A constant beside codes: it stays in f32.
// CHECK-LABEL: func.func @by_constants
func.func @by_constants(%x: tensor<4x5x!quant.uniform<u8:f32, 0.03:100>>) -> tensor<4x5x!quant.uniform<i8:f32, 0.02:7>> {
  // CHECK: nn.mul %x, {{.*}}(tensor<4x5x!quant.uniform<u8:f32, 0.03:100>>, tensor<5xf32>) -> tensor<4x5x!quant.uniform<i8:f32, 0.02:7>>
  %c = nn.constant dense<[0.5, 1.0, -0.7, 1.1, -100.0]> : tensor<5xf32>
  %d = quant.dequantize %x : tensor<4x5x!quant.uniform<u8:f32, 0.03:100>> -> tensor<4x5xf32>
  %a = nn.mul %d, %c : (tensor<4x5xf32>, tensor<5xf32>) -> tensor<4x5xf32>
  %q = quant.quantize %a : tensor<4x5xf32> -> tensor<4x5x!quant.uniform<i8:f32, 0.02:7>>
  func.return %q : tensor<4x5x!quant.uniform<i8:f32, 0.02:7>>
}

// Elementwise ops keep the recipe of the quantize; both operands of mul(x, x).
// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%x: !y, %z: !z) -> (!y, !z) {
  // CHECK-NEXT: [[A:%[^ ]+]] = nn.add %x, %z {activation = #nn.relu, recipe = f32}
  // CHECK-NEXT: [[M:%[^ ]+]] = nn.mul [[A]], [[A]]
  // CHECK-NEXT: [[S:%[^ ]+]] = nn.sigmoid [[M]]
  // CHECK-NEXT: func.return [[A]], [[S]]
  %d = quant.dequantize %x : !y -> !yf
  %e = quant.dequantize %z : !z -> !yf
  %a = nn.add %d, %e : (!yf, !yf) -> !yf
  %r = nn.relu %a : !yf -> !yf
  %p = quant.quantize %r {recipe = f32} : !yf -> !y
  %f = quant.dequantize %p : !y -> !yf
  %m = nn.mul %f, %f : (!yf, !yf) -> !yf
  %o = quant.quantize %m : !yf -> !z
  %g = quant.dequantize %o : !z -> !yf
  %s = nn.sigmoid %g : !yf -> !yf
  %q = quant.quantize %s : !yf -> !z
  func.return %p, %q : !y, !z
}

// CHECK-LABEL: func.func @pools
func.func @pools(%x: !y) -> (tensor<2x2x1x1x!quant.uniform<i8:f32, 0.2:5>>, tensor<2x!quant.uniform<i8:f32, 0.3:-5>>, tensor<2x2x1x1x!quant.uniform<i8:f32, 0.15:5>>) {
  // CHECK-NEXT: [[M:%[^ ]+]] = nn.max_pool2d %x {{.*}} -> tensor<2x2x2x3x!quant.uniform<i8:f32, 0.2:5>>
  // CHECK-NEXT: [[A:%[^ ]+]] = nn.adaptive_avg_pool2d [[M]]
  // CHECK-NEXT: [[N:%[^ ]+]] = nn.mean [[A]]
  // CHECK-NEXT: [[V:%[^ ]+]] = nn.avg_pool2d [[M]]
  // CHECK-NEXT: func.return [[A]], [[N]], [[V]]
  %d = quant.dequantize %x : !y -> !yf
  %m = nn.max_pool2d %d {kernel_size = array<i64: 2, 3>, stride = array<i64: 2, 3>, padding = array<i64: 0, 1>, dilation = array<i64: 1, 1>, ceil_mode = false} : !yf -> tensor<2x2x2x3xf32>
  %p = quant.quantize %m : tensor<2x2x2x3xf32> -> tensor<2x2x2x3x!quant.uniform<i8:f32, 0.2:5>>
  %e = quant.dequantize %p : tensor<2x2x2x3x!quant.uniform<i8:f32, 0.2:5>> -> tensor<2x2x2x3xf32>
  %a = nn.adaptive_avg_pool2d %e {output_size = array<i64: 1, 1>} : tensor<2x2x2x3xf32> -> tensor<2x2x1x1xf32>
  %o = quant.quantize %a : tensor<2x2x1x1xf32> -> tensor<2x2x1x1x!quant.uniform<i8:f32, 0.2:5>>
  %f = quant.dequantize %o : tensor<2x2x1x1x!quant.uniform<i8:f32, 0.2:5>> -> tensor<2x2x1x1xf32>
  %n = nn.mean %f {dim = array<i64: 1, 2, -1>, keepdim = false} : tensor<2x2x1x1xf32> -> tensor<2xf32>
  %q = quant.quantize %n : tensor<2xf32> -> tensor<2x!quant.uniform<i8:f32, 0.3:-5>>
  %u = nn.avg_pool2d %e {kernel_size = array<i64: 2, 3>, stride = array<i64: 2, 3>, padding = array<i64: 0, 0>, ceil_mode = false, count_include_pad = false} : tensor<2x2x2x3xf32> -> tensor<2x2x1x1xf32>
  %r = quant.quantize %u : tensor<2x2x1x1xf32> -> tensor<2x2x1x1x!quant.uniform<i8:f32, 0.15:5>>
  func.return %o, %q, %r : tensor<2x2x1x1x!quant.uniform<i8:f32, 0.2:5>>, tensor<2x!quant.uniform<i8:f32, 0.3:-5>>, tensor<2x2x1x1x!quant.uniform<i8:f32, 0.15:5>>
}

// Codes move where the encodings are the same, else a requantize does the rest; pad, expand and cat requantize first.
// CHECK-LABEL: func.func @movement
func.func @movement(%x: !y, %z: !z) -> (tensor<5x7x2x2x!quant.uniform<i8:f32, 0.2:5>>, tensor<4x35x!quant.uniform<u8:f32, 0.1:9>>, tensor<2x4x5x7x!quant.uniform<i8:f32, 0.2:5>>, tensor<2x2x6x7x!quant.uniform<u8:f32, 0.1:9>>) {
  // CHECK-NEXT: [[P:%[^ ]+]] = nn.permute %x
  // CHECK-NEXT: [[R:%[^ ]+]] = nn.reshape %x {{.*}} -> tensor<4x35x!quant.uniform<i8:f32, 0.2:5>>
  // CHECK-NEXT: [[S:%[^ ]+]] = quant.requantize [[R]] {recipe = f32} {{.*}} -> tensor<4x35x!quant.uniform<u8:f32, 0.1:9>>
  // CHECK-NEXT: [[T:%[^ ]+]] = quant.requantize %z {{.*}} -> tensor<2x2x5x7x!quant.uniform<i8:f32, 0.2:5>>
  // CHECK-NEXT: [[C:%[^ ]+]] = nn.cat %x, [[T]]
  // CHECK-NEXT: [[U:%[^ ]+]] = quant.requantize %x {{.*}} -> tensor<2x2x5x7x!quant.uniform<u8:f32, 0.1:9>>
  // CHECK-NEXT: [[V:%[^ ]+]] = nn.pad [[U]] {{.*}}value = 3.{{.*}} -> tensor<2x2x6x7x!quant.uniform<u8:f32, 0.1:9>>
  // CHECK-NEXT: func.return [[P]], [[S]], [[C]], [[V]]
  %d = quant.dequantize %x : !y -> !yf
  %e = quant.dequantize %z : !z -> !yf
  %p = nn.permute %d {dims = array<i64: 2, 3, 0, 1>} : !yf -> tensor<5x7x2x2xf32>
  %q = quant.quantize %p : tensor<5x7x2x2xf32> -> tensor<5x7x2x2x!quant.uniform<i8:f32, 0.2:5>>
  %r = nn.reshape %d : !yf -> tensor<4x35xf32>
  %s = quant.quantize %r {recipe = f32} : tensor<4x35xf32> -> tensor<4x35x!quant.uniform<u8:f32, 0.1:9>>
  %c = nn.cat %d, %e {dim = 1} : (!yf, !yf) -> tensor<2x4x5x7xf32>
  %t = quant.quantize %c : tensor<2x4x5x7xf32> -> tensor<2x4x5x7x!quant.uniform<i8:f32, 0.2:5>>
  %u = nn.pad %d {low = array<i64: 0, 0, 1, 0>, high = array<i64: 0, 0, 0, 0>, value = 3.33 : f32} : !yf -> tensor<2x2x6x7xf32>
  %v = quant.quantize %u : tensor<2x2x6x7xf32> -> tensor<2x2x6x7x!quant.uniform<u8:f32, 0.1:9>>
  func.return %q, %s, %t, %v : tensor<5x7x2x2x!quant.uniform<i8:f32, 0.2:5>>, tensor<4x35x!quant.uniform<u8:f32, 0.1:9>>, tensor<2x4x5x7x!quant.uniform<i8:f32, 0.2:5>>, tensor<2x2x6x7x!quant.uniform<u8:f32, 0.1:9>>
}

// A bias far beyond what int32 holds at one channel's scale: it stays a float, and the op is one.
// CHECK-LABEL: func.func @large_bias
func.func @large_bias(%x: tensor<4x3x!quant.uniform<u8:f32, 0.03:100>>) -> tensor<4x2x!quant.uniform<u8:f32, 0.07:30>> {
  // CHECK-NEXT: [[W:%[^ ]+]] = nn.constant
  // CHECK-NEXT: [[B:%[^ ]+]] = nn.constant dense<[0.5, 2.0]>
  // CHECK-NEXT: [[L:%[^ ]+]] = nn.linear %x, [[W]] bias([[B]]) {activation = #nn.relu} : {{.*}} -> tensor<4x2x!quant.uniform<u8:f32, 0.07:30>>
  // CHECK-NEXT: func.return [[L]]
  %w = nn.constant dense<[[5, -7, 127], [-2, 88, 1]]> : tensor<2x3x!quant.uniform<i8:f32:0, {1.0e-12, 0.01}>>
  %b = nn.constant dense<[0.5, 2.0]> : tensor<2xf32>
  %d = quant.dequantize %x : tensor<4x3x!quant.uniform<u8:f32, 0.03:100>> -> tensor<4x3xf32>
  %v = quant.dequantize %w : tensor<2x3x!quant.uniform<i8:f32:0, {1.0e-12, 0.01}>> -> tensor<2x3xf32>
  %l = nn.linear %d, %v bias(%b) {activation = #nn.relu} : (tensor<4x3xf32>, tensor<2x3xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  %q = quant.quantize %l : tensor<4x2xf32> -> tensor<4x2x!quant.uniform<u8:f32, 0.07:30>>
  func.return %q : tensor<4x2x!quant.uniform<u8:f32, 0.07:30>>
}
