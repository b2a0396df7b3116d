// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p fuse-qdq --verify-rewrites --split-input-file --explain --verify-diagnostics | filecheck %s

!x = tensor<4x3x!quant.uniform<i8:f32, 0.03:-7>>
!xf = tensor<4x3xf32>
!w = tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
!wf = tensor<2x3xf32>
!y = tensor<4x2x!quant.uniform<i8:f32, 0.2:5>>
!yf = tensor<4x2xf32>

// What is used elsewhere stays float; the contraction itself does not.
// CHECK-LABEL: func.func @other_use
func.func @other_use(%x: !x) -> (!y, !yf, !y, !yf) {
  // CHECK: nn.linear {{.*}} -> tensor<4x2xf32>
  // CHECK: quant.quantize
  // CHECK: nn.linear {{.*}} -> tensor<4x2xf32>
  // CHECK: nn.relu {{.*}} : tensor<4x2xf32> -> tensor<4x2x!quant.uniform<i8:f32, 0.2:5>>
  %w = nn.constant dense<[[5, -7, 127], [-2, 88, 1]]> : !w
  %d = quant.dequantize %x : !x -> !xf
  %v = quant.dequantize %w : !w -> !wf
  %l = nn.linear %d, %v : (!xf, !wf) -> !yf
  // expected-remark@+1 {{FuseWithQuantize refused 'quant.quantize': the result of nn.linear has other uses}}
  %q = quant.quantize %l : !yf -> !y
  %m = nn.linear %d, %v : (!xf, !wf) -> !yf
  %r = nn.relu %m : !yf -> !yf
  // expected-remark@+1 {{FuseWithQuantize refused 'quant.quantize': the result of nn.linear has other uses}}
  %p = quant.quantize %r : !yf -> !y
  func.return %q, %l, %p, %m : !y, !yf, !y, !yf
}

// -----

!xf = tensor<4x3xf32>
!w = tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
!wf = tensor<2x3xf32>
!y = tensor<4x2x!quant.uniform<i8:f32, 0.2:5>>
!yf = tensor<4x2xf32>

// The input is float, or quantized per channel, or wider than 16 bits; the result is quantized per channel.
// CHECK-LABEL: func.func @activations
func.func @activations(%x: !xf, %u: tensor<4x3x!quant.uniform<i8:f32:1, {0.5, 0.25, 0.1}>>, %t: tensor<4x3x!quant.uniform<i32:f32, 0.1>>, %s: tensor<4x3x!quant.uniform<i8:f32, 0.1:1>>) -> (!y, !y, !y, tensor<4x2x!quant.uniform<i8:f32:1, {0.2, 0.3}>>) {
  // CHECK-COUNT-3: nn.linear {{.*}}tensor<4x3xf32>, tensor<2x3xf32>
  %w = nn.constant dense<[[5, -7, 127], [-2, 88, 1]]> : !w
  %v = quant.dequantize %w : !w -> !wf
  // expected-remark@+1 {{FuseWithFloatResult refused 'nn.linear': input is not dequantized}}
  %l = nn.linear %x, %v : (!xf, !wf) -> !yf
  // expected-remark@+1 {{FuseWithQuantize refused 'quant.quantize': input is not dequantized}}
  %q = quant.quantize %l : !yf -> !y
  %d = quant.dequantize %u : tensor<4x3x!quant.uniform<i8:f32:1, {0.5, 0.25, 0.1}>> -> !xf
  // expected-remark@+1 {{FuseWithFloatResult refused 'nn.linear': input is not quantized per tensor}}
  %m = nn.linear %d, %v : (!xf, !wf) -> !yf
  // expected-remark@+1 {{FuseWithQuantize refused 'quant.quantize': input is not quantized per tensor}}
  %p = quant.quantize %m : !yf -> !y
  %e = quant.dequantize %t : tensor<4x3x!quant.uniform<i32:f32, 0.1>> -> !xf
  // expected-remark@+1 {{FuseWithFloatResult refused 'nn.linear': input is wider than 16 bits}}
  %n = nn.linear %e, %v : (!xf, !wf) -> !yf
  // expected-remark@+1 {{FuseWithQuantize refused 'quant.quantize': input is wider than 16 bits}}
  %o = quant.quantize %n : !yf -> !y
  // CHECK: nn.linear {{.*}}!quant.uniform<i8:f32, 0.1:1>>{{.*}} -> tensor<4x2xf32>
  %f = quant.dequantize %s : tensor<4x3x!quant.uniform<i8:f32, 0.1:1>> -> !xf
  %k = nn.linear %f, %v : (!xf, !wf) -> !yf
  // expected-remark@+1 {{FuseWithQuantize refused 'quant.quantize': result is not quantized per tensor}}
  %r = quant.quantize %k : !yf -> tensor<4x2x!quant.uniform<i8:f32:1, {0.2, 0.3}>>
  func.return %q, %p, %o, %r : !y, !y, !y, tensor<4x2x!quant.uniform<i8:f32:1, {0.2, 0.3}>>
}

// -----

!x = tensor<4x3x!quant.uniform<i8:f32, 0.03:-7>>
!xf = tensor<4x3xf32>
!wf = tensor<2x3xf32>
!y = tensor<4x2x!quant.uniform<i8:f32, 0.2:5>>
!yf = tensor<4x2xf32>

// The weight is no constant, has a zero point, or is quantized along its input channels; the bias is no constant.
// CHECK-LABEL: func.func @weights
func.func @weights(%x: !x, %u: tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>, %b: tensor<2xf32>) -> (!y, !y, !y, !y) {
  // CHECK-COUNT-4: nn.linear {{.*}}tensor<4x3xf32>, tensor<2x3xf32>
  %d = quant.dequantize %x : !x -> !xf
  %v = quant.dequantize %u : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>> -> !wf
  // expected-remark@+1 {{FuseWithFloatResult refused 'nn.linear': weight is not a quantized constant}}
  %l = nn.linear %d, %v : (!xf, !wf) -> !yf
  // expected-remark@+1 {{FuseWithQuantize refused 'quant.quantize': weight is not a quantized constant}}
  %q = quant.quantize %l : !yf -> !y
  %w = nn.constant dense<[[5, -7, 127], [-2, 88, 1]]> : tensor<2x3x!quant.uniform<i8:f32, 0.5:1>>
  %e = quant.dequantize %w : tensor<2x3x!quant.uniform<i8:f32, 0.5:1>> -> !wf
  // expected-remark@+1 {{FuseWithFloatResult refused 'nn.linear': weight has a zero point that is not 0}}
  %m = nn.linear %d, %e : (!xf, !wf) -> !yf
  // expected-remark@+1 {{FuseWithQuantize refused 'quant.quantize': weight has a zero point that is not 0}}
  %p = quant.quantize %m : !yf -> !y
  %t = nn.constant dense<[[5, -7, 127], [-2, 88, 1]]> : tensor<2x3x!quant.uniform<i8:f32:1, {0.5, 0.1, 0.2}>>
  %f = quant.dequantize %t : tensor<2x3x!quant.uniform<i8:f32:1, {0.5, 0.1, 0.2}>> -> !wf
  // expected-remark@+1 {{FuseWithFloatResult refused 'nn.linear': weight is not quantized per channel}}
  %n = nn.linear %d, %f : (!xf, !wf) -> !yf
  // expected-remark@+1 {{FuseWithQuantize refused 'quant.quantize': weight is not quantized per channel}}
  %o = quant.quantize %n : !yf -> !y
  %s = nn.constant dense<[[5, -7, 127], [-2, 88, 1]]> : tensor<2x3x!quant.uniform<i8:f32, 0.5>>
  %g = quant.dequantize %s : tensor<2x3x!quant.uniform<i8:f32, 0.5>> -> !wf
  // expected-remark@+1 {{FuseWithFloatResult refused 'nn.linear': bias is not constant}}
  %k = nn.linear %d, %g bias(%b) : (!xf, !wf, tensor<2xf32>) -> !yf
  // expected-remark@+1 {{FuseWithQuantize refused 'quant.quantize': bias is not constant}}
  %r = quant.quantize %k : !yf -> !y
  func.return %q, %p, %o, %r : !y, !y, !y, !y
}

// -----

!x = tensor<4x3x!quant.uniform<i16:f32, 0.03:-7>>
!y = tensor<4x2x!quant.uniform<i8:f32, 0.2:5>>

// int32 is not enough.
// CHECK-LABEL: func.func @overflow
func.func @overflow(%x: !x) -> !y {
  // CHECK: nn.linear {{.*}}tensor<4x3xf32>, tensor<2x3xf32>
  %w = nn.constant dense<[[5, -7, 127], [32767, 32767, 1]]> : tensor<2x3x!quant.uniform<i16:f32, 0.01>>
  %d = quant.dequantize %x : !x -> tensor<4x3xf32>
  %v = quant.dequantize %w : tensor<2x3x!quant.uniform<i16:f32, 0.01>> -> tensor<2x3xf32>
  // expected-remark@+1 {{FuseWithFloatResult refused 'nn.linear': int32 accumulator overflows: |acc| can reach 2147844090}}
  %l = nn.linear %d, %v : (tensor<4x3xf32>, tensor<2x3xf32>) -> tensor<4x2xf32>
  // expected-remark@+1 {{FuseWithQuantize refused 'quant.quantize': int32 accumulator overflows: |acc| can reach 2147844090}}
  %q = quant.quantize %l : tensor<4x2xf32> -> !y
  func.return %q : !y
}

// -----

!x = tensor<2x3x!quant.uniform<i8:f32, 0.03:-7>>
!xf = tensor<2x3xf32>
!w = tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
!y = tensor<2x2x!quant.uniform<i8:f32, 0.2:5>>
!yf = tensor<2x2xf32>

// Residuals: broadcast (on a square, where sizes do not tell), not dequantized, behind an activation, used elsewhere.
// CHECK-LABEL: func.func @residuals
func.func @residuals(%x: !x, %r: tensor<2x!quant.uniform<i8:f32, 0.1:4>>, %f: !yf, %s: !y) -> (!y, !y, !y, !y, !yf) {
  // CHECK-NOT: residual
  %w = nn.constant dense<[[5, -7, 127], [-2, 88, 1]]> : !w
  %d = quant.dequantize %x : !x -> !xf
  %v = quant.dequantize %w : !w -> !xf
  %b = quant.dequantize %r : tensor<2x!quant.uniform<i8:f32, 0.1:4>> -> tensor<2xf32>
  %e = quant.dequantize %s : !y -> !yf
  %l = nn.linear %d, %v : (!xf, !xf) -> !yf
  %a = nn.add %l, %b : (!yf, tensor<2xf32>) -> !yf
  // expected-remark@+1 {{the residual is broadcast}}
  %q = quant.quantize %a : !yf -> !y
  %m = nn.linear %d, %v : (!xf, !xf) -> !yf
  %c = nn.add %m, %f : (!yf, !yf) -> !yf
  // expected-remark@+1 {{neither operand of the add behind nn.linear is dequantized}}
  %p = quant.quantize %c : !yf -> !y
  %n = nn.linear %d, %v {activation = #nn.relu} : (!xf, !xf) -> !yf
  %g = nn.add %n, %e : (!yf, !yf) -> !yf
  // expected-remark@+1 {{nn.linear has an activation or a residual before the add}}
  %o = quant.quantize %g : !yf -> !y
  %k = nn.linear %d, %v : (!xf, !xf) -> !yf
  %h = nn.add %k, %e : (!yf, !yf) -> !yf
  // expected-remark@+1 {{the result of nn.linear has other uses}}
  %t = quant.quantize %h : !yf -> !y
  func.return %q, %p, %o, %t, %k : !y, !y, !y, !y, !yf
}

// -----

!y = tensor<4x2x!quant.uniform<i8:f32, 0.2:5>>
!yf = tensor<4x2xf32>

// One operand is float; no integer form; another expressed type.
// CHECK-LABEL: func.func @others
func.func @others(%x: !y, %f: !yf, %h: tensor<4x2x!quant.uniform<i8:f16, 0.2:5>>) -> (!y, !y, tensor<4x2x!quant.uniform<i8:f16, 0.2:5>>) {
  // CHECK: nn.add %x, %f : (tensor<4x2x!quant.uniform<i8:f32, 0.2:5>>, tensor<4x2xf32>) -> tensor<4x2x!quant.uniform<i8:f32, 0.2:5>>
  // CHECK: nn.scatter {{.*}}tensor<4x2xf32>
  // CHECK: nn.neg {{.*}}tensor<4x2xf16>
  %d = quant.dequantize %x : !y -> !yf
  %a = nn.add %d, %f : (!yf, !yf) -> !yf
  // expected-remark@+1 {{operand 1 is not dequantized}}
  %q = quant.quantize %a : !yf -> !y
  %i = nn.constant dense<1> : tensor<1x1xi64>
  %s = nn.scatter %d into %d[%i] {dim = 0, reduce = "add"} : (!yf, tensor<1x1xi64>, !yf) -> !yf
  // expected-remark@+1 {{nn.scatter has no integer form}}
  %p = quant.quantize %s : !yf -> !y
  %e = quant.dequantize %h : tensor<4x2x!quant.uniform<i8:f16, 0.2:5>> -> tensor<4x2xf16>
  %n = nn.neg %e : tensor<4x2xf16> -> tensor<4x2xf16>
  // expected-remark@+1 {{result is quantized from f16, not f32}}
  %o = quant.quantize %n : tensor<4x2xf16> -> tensor<4x2x!quant.uniform<i8:f16, 0.2:5>>
  func.return %q, %p, %o : !y, !y, tensor<4x2x!quant.uniform<i8:f16, 0.2:5>>
}

// -----

// Matmul: the right side has zero points per column, is quantized along its rows, or is float; sums that do not fit.
// CHECK-LABEL: func.func @matmul
func.func @matmul(%x: tensor<4x3x!quant.uniform<u8:f32, 0.03:100>>, %y: tensor<3x3x!quant.uniform<i8:f32:1, {0.01:1, 0.02, 0.03}>>, %z: tensor<3x3x!quant.uniform<i8:f32:0, {0.5, 0.25, 0.1}>>, %f: tensor<3x3xf32>, %g: tensor<34000x1x!quant.uniform<i8:f32, 0.1:5>>) -> (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<1x1xf32>) {
  // CHECK-COUNT-3: nn.matmul {{.*}}(tensor<4x3xf32>, tensor<3x3xf32>)
  // CHECK: nn.matmul {{.*}}(tensor<1x34000xf32>, tensor<34000x1xf32>)
  %d = quant.dequantize %x : tensor<4x3x!quant.uniform<u8:f32, 0.03:100>> -> tensor<4x3xf32>
  %e = quant.dequantize %y : tensor<3x3x!quant.uniform<i8:f32:1, {0.01:1, 0.02, 0.03}>> -> tensor<3x3xf32>
  %h = quant.dequantize %z : tensor<3x3x!quant.uniform<i8:f32:0, {0.5, 0.25, 0.1}>> -> tensor<3x3xf32>
  %i = quant.dequantize %g : tensor<34000x1x!quant.uniform<i8:f32, 0.1:5>> -> tensor<34000x1xf32>
  %j = nn.reshape %i : tensor<34000x1xf32> -> tensor<1x34000xf32>
  %k = quant.quantize %j : tensor<1x34000xf32> -> tensor<1x34000x!quant.uniform<i8:f32, 0.1:5>>
  %l = quant.dequantize %k : tensor<1x34000x!quant.uniform<i8:f32, 0.1:5>> -> tensor<1x34000xf32>
  // expected-remark@+1 {{right side is quantized per channel with a zero point that is not 0}}
  %m = nn.matmul %d, %e : (tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<4x3xf32>
  // expected-remark@+1 {{right side is quantized along another dimension than its last}}
  %n = nn.matmul %d, %h : (tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<4x3xf32>
  // expected-remark@+1 {{right side is not dequantized}}
  %o = nn.matmul %d, %f : (tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<4x3xf32>
  // expected-remark@+1 {{int32 accumulator overflows: sums of products of codes can reach 2210850000}}
  %p = nn.matmul %l, %i : (tensor<1x34000xf32>, tensor<34000x1xf32>) -> tensor<1x1xf32>
  func.return %m, %n, %o, %p : tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<1x1xf32>
}

// -----

// An average over an unknown number of elements, or over so many that int32 is not enough.
// CHECK-LABEL: func.func @averages
func.func @averages(%x: tensor<?x3x!quant.uniform<i8:f32, 0.03:-7>>, %y: tensor<70000x3x!quant.uniform<i16:f32, 0.03:-7>>) -> (tensor<3x!quant.uniform<i8:f32, 0.03:-7>>, tensor<3x!quant.uniform<i8:f32, 0.03:-7>>) {
  // CHECK: nn.mean {{.*}}tensor<?x3xf32>
  // CHECK: nn.mean {{.*}}tensor<70000x3xf32>
  %d = quant.dequantize %x : tensor<?x3x!quant.uniform<i8:f32, 0.03:-7>> -> tensor<?x3xf32>
  %m = nn.mean %d {dim = array<i64: 0>, keepdim = false} : tensor<?x3xf32> -> tensor<3xf32>
  // expected-remark@+1 {{the number of elements to sum up is not known}}
  %q = quant.quantize %m : tensor<3xf32> -> tensor<3x!quant.uniform<i8:f32, 0.03:-7>>
  %e = quant.dequantize %y : tensor<70000x3x!quant.uniform<i16:f32, 0.03:-7>> -> tensor<70000x3xf32>
  %n = nn.mean %e {dim = array<i64: 0>, keepdim = false} : tensor<70000x3xf32> -> tensor<3xf32>
  // expected-remark@+1 {{int32 accumulator overflows: a sum can reach 2294180000}}
  %p = quant.quantize %n : tensor<3xf32> -> tensor<3x!quant.uniform<i8:f32, 0.03:-7>>
  func.return %q, %p : tensor<3x!quant.uniform<i8:f32, 0.03:-7>>, tensor<3x!quant.uniform<i8:f32, 0.03:-7>>
}

// -----

// An average pool quantizes by the default recipe.
// CHECK-LABEL: func.func @recipe
func.func @recipe(%x: tensor<1x2x3x5x!quant.uniform<i8:f32, 0.03:-7>>) -> tensor<1x2x1x1x!quant.uniform<i8:f32, 0.02:5>> {
  // CHECK: nn.adaptive_avg_pool2d {{.*}}xf32
  %d = quant.dequantize %x : tensor<1x2x3x5x!quant.uniform<i8:f32, 0.03:-7>> -> tensor<1x2x3x5xf32>
  %m = nn.adaptive_avg_pool2d %d {output_size = array<i64: 1, 1>} : tensor<1x2x3x5xf32> -> tensor<1x2x1x1xf32>
  // expected-remark@+1 {{nn.adaptive_avg_pool2d quantizes by the default recipe only}}
  %q = quant.quantize %m {recipe = f32} : tensor<1x2x1x1xf32> -> tensor<1x2x1x1x!quant.uniform<i8:f32, 0.02:5>>
  func.return %q : tensor<1x2x1x1x!quant.uniform<i8:f32, 0.02:5>>
}

// -----

func.func @error(%x: tensor<4x3x!quant.uniform<u8:f32, 0.03:100>>, %w: tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25, 0.1}>>) -> tensor<4x2xf32> {
  // expected-error@+1 {{3 scales for dimension 0 of size 2}}
  %m = nn.linear %x, %w : (tensor<4x3x!quant.uniform<u8:f32, 0.03:100>>, tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25, 0.1}>>) -> tensor<4x2xf32>
  func.return %m : tensor<4x2xf32>
}
