// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p unsigned-activations --verify-rewrites --split-input-file --explain --verify-diagnostics | filecheck %s
// RUN: qcomp-opt %s -p unsigned-activations,unsigned-activations --verify-rewrites --split-input-file --explain \
// RUN:   --verify-diagnostics | filecheck %s

!q = tensor<2x3x!quant.uniform<i8<-127:127>:f32, 0.2:5>>
!p = tensor<2x3x!quant.uniform<i8:f32, 0.1:-7>>
!y = tensor<2x4x!quant.uniform<i8:f32, 0.3:-128>>

// Inside: range and zero point move by 128. A quantize keeps its type (NaN becomes code 0 in either), a requantize
// follows; weights stay; the result has the type it had.
// CHECK-LABEL: func.func @inside
func.func @inside(%x: tensor<2x3xf32>) -> !y {
  // CHECK: [[W:%[^ ]+]] = nn.constant {{.*}} : tensor<4x3x!quant.uniform<i8:f32, 0.01>>
  // CHECK-NEXT: [[Q:%[^ ]+]] = quant.quantize %x {{.*}} -> tensor<2x3x!quant.uniform<i8<-127:127>:f32, 0.2:5>>
  // CHECK-NEXT: [[U:%[^ ]+]] = quant.requantize [[Q]] {{.*}} -> tensor<2x3x!quant.uniform<u8<1:255>:f32, 0.2:133>>
  // CHECK-NEXT: [[R:%[^ ]+]] = nn.relu [[U]] {{.*}} -> tensor<2x3x!quant.uniform<u8:f32, 0.1:121>>
  // CHECK-NEXT: [[L:%[^ ]+]] = nn.linear [[R]], [[W]] {{.*}} -> tensor<2x4x!quant.uniform<u8:f32, 0.3>>
  // CHECK-NEXT: [[Y:%[^ ]+]] = quant.requantize [[L]] {{.*}} -> tensor<2x4x!quant.uniform<i8:f32, 0.3:-128>>
  // CHECK-NEXT: func.return [[Y]]
  %w = nn.constant dense<[[5, -7, 127], [-2, 88, 1], [1, 2, 3], [9, 8, 7]]> : tensor<4x3x!quant.uniform<i8:f32, 0.01>>
  %q = quant.quantize %x : tensor<2x3xf32> -> !q
  %r = nn.relu %q : !q -> !p
  %l = nn.linear %r, %w : (!p, tensor<4x3x!quant.uniform<i8:f32, 0.01>>) -> !y
  func.return %l : !y
}

// Arguments keep their type. A constant that is added becomes another constant; one that is also a weight stays beside
// it. What leaves as plain integers keeps its codes.
// CHECK-LABEL: func.func @borders
func.func @borders(%x: !q) -> (tensor<2x3xi8>, tensor<2x2xf32>) {
  // CHECK-NEXT: [[X:%[^ ]+]] = quant.requantize %x {{.*}} -> tensor<2x3x!quant.uniform<u8<1:255>:f32, 0.2:133>>
  // CHECK-NEXT: [[C:%[^ ]+]] = nn.constant dense<{{\[\[1, 2, 3\], \[4, 5, -128\]\]}}> : tensor<2x3x!quant.uniform<i8:f32, 0.01>>
  // CHECK-NEXT: [[D:%[^ ]+]] = nn.constant dense<{{\[\[129, 130, 131\], \[132, 133, 0\]\]}}> : tensor<2x3x!quant.uniform<u8:f32, 0.01:128>>
  // CHECK-NEXT: [[A:%[^ ]+]] = nn.add [[X]], [[D]] {{.*}} -> tensor<2x3x!quant.uniform<u8:f32, 0.1:121>>
  // CHECK-NEXT: [[S:%[^ ]+]] = quant.requantize [[A]] {{.*}} -> tensor<2x3x!quant.uniform<i8:f32, 0.1:-7>>
  // CHECK-NEXT: [[I:%[^ ]+]] = quant.cast_storage [[S]]
  // CHECK-NEXT: [[L:%[^ ]+]] = nn.linear [[A]], [[C]]
  // CHECK-NEXT: func.return [[I]], [[L]]
  %c = nn.constant dense<[[1, 2, 3], [4, 5, -128]]> : tensor<2x3x!quant.uniform<i8:f32, 0.01>>
  %a = nn.add %x, %c : (!q, tensor<2x3x!quant.uniform<i8:f32, 0.01>>) -> !p
  %s = quant.cast_storage %a : !p to tensor<2x3xi8>
  %l = nn.linear %a, %c : (!p, tensor<2x3x!quant.uniform<i8:f32, 0.01>>) -> tensor<2x2xf32>
  func.return %s, %l : tensor<2x3xi8>, tensor<2x2xf32>
}

// The right side of a matmul may be unsigned, or signed as an argument is; a division can make NaN.
// CHECK-LABEL: func.func @weights
func.func @weights(%x: tensor<3x3x!quant.uniform<i8:f32, 0.1>>) -> (tensor<3x3xf32>, tensor<3x3xf32>) {
  // CHECK-NEXT: [[X:%[^ ]+]] = quant.requantize %x
  // CHECK-NEXT: [[N:%[^ ]+]] = nn.neg [[X]] {{.*}} -> tensor<3x3x!quant.uniform<u8:f32, 0.1:128>>
  // CHECK-NEXT: [[D:%[^ ]+]] = nn.div [[X]], [[N]] {{.*}} -> tensor<3x3x!quant.uniform<i8:f32, 0.1:3>>
  // CHECK-NEXT: [[E:%[^ ]+]] = quant.requantize [[D]] {{.*}} -> tensor<3x3x!quant.uniform<u8:f32, 0.1:131>>
  // CHECK-NEXT: nn.matmul [[E]], [[N]]
  // CHECK-NEXT: nn.matmul [[E]], %x
  %n = nn.neg %x : tensor<3x3x!quant.uniform<i8:f32, 0.1>> -> tensor<3x3x!quant.uniform<i8:f32, 0.1>>
  %d = nn.div %x, %n : (tensor<3x3x!quant.uniform<i8:f32, 0.1>>, tensor<3x3x!quant.uniform<i8:f32, 0.1>>) -> tensor<3x3x!quant.uniform<i8:f32, 0.1:3>>
  %m = nn.matmul %d, %n : (tensor<3x3x!quant.uniform<i8:f32, 0.1:3>>, tensor<3x3x!quant.uniform<i8:f32, 0.1>>) -> tensor<3x3xf32>
  %k = nn.matmul %d, %x : (tensor<3x3x!quant.uniform<i8:f32, 0.1:3>>, tensor<3x3x!quant.uniform<i8:f32, 0.1>>) -> tensor<3x3xf32>
  func.return %m, %k : tensor<3x3xf32>, tensor<3x3xf32>
}

// Picks, choices and extremes follow; what finds places reads any codes.
// CHECK-LABEL: func.func @picks
func.func @picks(%x: tensor<3x3x!quant.uniform<i8:f32, 0.1>>, %i: tensor<3x3xi64>, %m: tensor<3x3xi1>) -> (tensor<3x3xf32>, tensor<3x3xi64>) {
  // CHECK-NEXT: [[X:%[^ ]+]] = quant.requantize %x
  // CHECK-NEXT: [[C:%[^ ]+]] = nn.constant dense<3> : tensor<!quant.uniform<i8:f32, 0.1>>
  // CHECK-NEXT: [[D:%[^ ]+]] = nn.constant dense<131> : tensor<!quant.uniform<u8:f32, 0.1:128>>
  // CHECK-NEXT: [[G:%[^ ]+]] = nn.gather [[X]][%i] {{.*}} -> tensor<3x3x!quant.uniform<u8:f32, 0.1:128>>
  // CHECK-NEXT: [[S:%[^ ]+]] = nn.select %m, [[G]], [[D]] {{.*}} -> tensor<3x3x!quant.uniform<u8:f32, 0.1:128>>
  // CHECK-NEXT: [[R:%[^ ]+]] = nn.scan "max", [[S]] {{.*}} -> tensor<3x3x!quant.uniform<u8:f32, 0.1:128>>
  // CHECK-NEXT: nn.argsort [[R]]
  // CHECK-NEXT: quant.dequantize [[R]]
  %c = nn.constant dense<3> : tensor<!quant.uniform<i8:f32, 0.1>>
  %g = nn.gather %x[%i] {dim = 0} : (tensor<3x3x!quant.uniform<i8:f32, 0.1>>, tensor<3x3xi64>) -> tensor<3x3x!quant.uniform<i8:f32, 0.1>>
  %s = nn.select %m, %g, %c : (tensor<3x3xi1>, tensor<3x3x!quant.uniform<i8:f32, 0.1>>, tensor<!quant.uniform<i8:f32, 0.1>>) -> tensor<3x3x!quant.uniform<i8:f32, 0.1>>
  %r = nn.scan "max", %s {dim = 1} : tensor<3x3x!quant.uniform<i8:f32, 0.1>> -> tensor<3x3x!quant.uniform<i8:f32, 0.1>>
  %a = nn.argsort %r {dim = 1, descending = false} : tensor<3x3x!quant.uniform<i8:f32, 0.1>> -> tensor<3x3xi64>
  %d = quant.dequantize %r : tensor<3x3x!quant.uniform<i8:f32, 0.1>> -> tensor<3x3xf32>
  func.return %d, %a : tensor<3x3xf32>, tensor<3x3xi64>
}

// Not touched: unsigned, wider, per channel, float.
// CHECK-LABEL: func.func @others
func.func @others(%x: tensor<2x3x!quant.uniform<u8:f32, 0.1:3>>, %y: tensor<2x3x!quant.uniform<i16:f32, 0.1:3>>, %z: tensor<2x3x!quant.uniform<i8:f32:0, {0.1, 0.2}>>, %f: tensor<2x3xf32>) -> (tensor<2x3x!quant.uniform<u8:f32, 0.1:3>>, tensor<2x3x!quant.uniform<i16:f32, 0.1:3>>, tensor<2x3x!quant.uniform<i8:f32:0, {0.1, 0.2}>>, tensor<2x3xf32>) {
  // CHECK-NOT: quant.requantize
  // CHECK: func.return
  %a = nn.relu %x : tensor<2x3x!quant.uniform<u8:f32, 0.1:3>> -> tensor<2x3x!quant.uniform<u8:f32, 0.1:3>>
  %b = nn.relu %y : tensor<2x3x!quant.uniform<i16:f32, 0.1:3>> -> tensor<2x3x!quant.uniform<i16:f32, 0.1:3>>
  %c = nn.relu %z : tensor<2x3x!quant.uniform<i8:f32:0, {0.1, 0.2}>> -> tensor<2x3x!quant.uniform<i8:f32:0, {0.1, 0.2}>>
  %d = nn.relu %f : tensor<2x3xf32> -> tensor<2x3xf32>
  func.return %a, %b, %c, %d : tensor<2x3x!quant.uniform<u8:f32, 0.1:3>>, tensor<2x3x!quant.uniform<i16:f32, 0.1:3>>, tensor<2x3x!quant.uniform<i8:f32:0, {0.1, 0.2}>>, tensor<2x3xf32>
}

// -----

// Refused: scales for which requantizing does not keep the codes, or with which arithmetic can make NaN.
// CHECK-LABEL: func.func @scales
// expected-remark@+2 {{'func.func': requantizing does not keep every code}}
// expected-remark@+1 {{'func.func': the real numbers are so large that arithmetic on them can make NaN}}
func.func @scales(%x: tensor<2x!quant.uniform<i8:f32, 1.0e-44:3>>, %y: tensor<2x!quant.uniform<i8:f32, 1.0e+37:3>>) -> (tensor<2x!quant.uniform<i8:f32, 1.0e-44:3>>, tensor<2x!quant.uniform<i8:f32, 1.0e+37:3>>) {
  // CHECK-NOT: quant.requantize
  // expected-remark@+1 {{'nn.neg': requantizing does not keep every code}}
  %a = nn.neg %x : tensor<2x!quant.uniform<i8:f32, 1.0e-44:3>> -> tensor<2x!quant.uniform<i8:f32, 1.0e-44:3>>
  // expected-remark@+1 {{'nn.sub': the real numbers are so large that arithmetic on them can make NaN}}
  %b = nn.sub %y, %y : (tensor<2x!quant.uniform<i8:f32, 1.0e+37:3>>, tensor<2x!quant.uniform<i8:f32, 1.0e+37:3>>) -> tensor<2x!quant.uniform<i8:f32, 1.0e+37:3>>
  func.return %a, %b : tensor<2x!quant.uniform<i8:f32, 1.0e-44:3>>, tensor<2x!quant.uniform<i8:f32, 1.0e+37:3>>
}

// -----

func.func @error(%x: tensor<2x!quant.uniform<u8:f32, 0.1:3>>) -> tensor<2xi8> {
  // expected-error@+1 {{storage differs}}
  %a = quant.cast_storage %x : tensor<2x!quant.uniform<u8:f32, 0.1:3>> to tensor<2xi8>
  func.return %a : tensor<2xi8>
}

// -----

// Zero points that are operands: codes, range and zero points move together; NaN stays the code it was.
// CHECK-LABEL: func.func @dynamic
func.func @dynamic(%x: tensor<5x1x3xf32>, %s: tensor<f32>, %z: tensor<i32>) -> (tensor<5x2xf32>, tensor<5x1x3xf32>) {
  // CHECK: [[Z:%[^ ]+]] = nn.add %z, {{.*}} : (tensor<i32>, tensor<i32>) -> tensor<i32>
  // CHECK-NEXT: [[Q:%[^ ]+]] = quant.quantize_dynamic %x, %s, [[Z]] {qmin = 0 : i64, qmax = 255 : i64, nan = 128 : i64} : {{.*}} -> tensor<5x1x3xui8>
  // CHECK-NEXT: [[R:%[^ ]+]] = nn.reshape [[Q]] : tensor<5x1x3xui8> -> tensor<5x3xui8>
  // CHECK: nn.dynamic_linear [[R]], %s, {{.*}} : (tensor<5x3xui8>
  // CHECK: quant.dequantize_dynamic [[Q]], %s, {{.*}} : (tensor<5x1x3xui8>
  %q = quant.quantize_dynamic %x, %s, %z {qmin = -128, qmax = 127} : (tensor<5x1x3xf32>, tensor<f32>, tensor<i32>) -> tensor<5x1x3xi8>
  %r = nn.reshape %q : tensor<5x1x3xi8> -> tensor<5x3xi8>
  %w = nn.constant dense<[[1, -2, 3], [4, 5, -127]]> : tensor<2x3x!quant.uniform<i8:f32, 0.5>>
  %y = nn.dynamic_linear %r, %s, %z, %w : (tensor<5x3xi8>, tensor<f32>, tensor<i32>, tensor<2x3x!quant.uniform<i8:f32, 0.5>>) -> tensor<5x2xf32>
  %d = quant.dequantize_dynamic %q, %s, %z : (tensor<5x1x3xi8>, tensor<f32>, tensor<i32>) -> tensor<5x1x3xf32>
  func.return %y, %d : tensor<5x2xf32>, tensor<5x1x3xf32>
}

// -----

// Must not: signed codes that something else reads; unsigned ones; a fractional zero point.
// CHECK-LABEL: func.func @signed
func.func @signed(%x: tensor<2x3xf32>, %s: tensor<f32>, %z: tensor<i32>, %f: tensor<f32>) -> (tensor<2x3xi8>, tensor<2x3xf32>, tensor<2x3xf32>) {
  // CHECK-NEXT: quant.quantize_dynamic {{.*}} -> tensor<2x3xi8>
  // CHECK-NEXT: quant.quantize_dynamic {{.*}} {qmin = 0 : i64, qmax = 255 : i64} {{.*}} -> tensor<2x3xui8>
  // CHECK-NEXT: quant.quantize_dynamic {{.*}} -> tensor<2x3xi8>
  // expected-remark@+1 {{func.return reads the signed codes}}
  %q = quant.quantize_dynamic %x, %s, %z {qmin = -128, qmax = 127} : (tensor<2x3xf32>, tensor<f32>, tensor<i32>) -> tensor<2x3xi8>
  %u = quant.quantize_dynamic %x, %s, %z {qmin = 0, qmax = 255} : (tensor<2x3xf32>, tensor<f32>, tensor<i32>) -> tensor<2x3xui8>
  %v = quant.quantize_dynamic %x, %s, %f {qmin = -128, qmax = 127} : (tensor<2x3xf32>, tensor<f32>, tensor<f32>) -> tensor<2x3xi8>
  %d = quant.dequantize_dynamic %u, %s, %z : (tensor<2x3xui8>, tensor<f32>, tensor<i32>) -> tensor<2x3xf32>
  %e = quant.dequantize_dynamic %v, %s, %f : (tensor<2x3xi8>, tensor<f32>, tensor<f32>) -> tensor<2x3xf32>
  func.return %q, %d, %e : tensor<2x3xi8>, tensor<2x3xf32>, tensor<2x3xf32>
}
