// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p propagate-qdq --verify-rewrites --split-input-file --explain --verify-diagnostics | filecheck %s

!q = tensor<2x3x5x7x!quant.uniform<i8:f32, 0.2:5>>
!f = tensor<2x3x5x7xf32>
!u = tensor<2x3x5x7x!quant.uniform<u8:f32, 0.2:5>>

// dequantize and quantize meet: gone when the encodings are the same, else a requantize with the recipe of the quantize.
// CHECK-LABEL: func.func @meet
func.func @meet(%x: !q) -> (!q, !u) {
  // CHECK-NEXT: [[R:%[^ ]+]] = quant.requantize %x {recipe = f32} : {{.*}}i8:f32, 0.2:5>> -> {{.*}}u8:f32, 0.2:5>>
  // CHECK-NEXT: func.return %x, [[R]]
  %d = quant.dequantize %x : !q -> !f
  %a = quant.quantize %d : !f -> !q
  %b = quant.quantize %d {recipe = f32} : !f -> !u
  func.return %a, %b : !q, !u
}

// Down through movement, max pool, relu and a padding that is a code, to the result.
// CHECK-LABEL: func.func @sink
func.func @sink(%x: !q) -> (tensor<6x35xf32>, tensor<7x5x3x2xf32>, tensor<2x3x5x4xf32>, tensor<2x6x5x7xf32>, tensor<2x3x6x7xf32>, tensor<2x3x2x3xf32>, !f) {
  // CHECK-NEXT: [[A:%[^ ]+]] = nn.reshape %x {{.*}} -> tensor<6x35x!quant.uniform<i8:f32, 0.2:5>>
  // CHECK-NEXT: quant.dequantize [[A]]
  // CHECK-NEXT: nn.permute %x
  // CHECK-NEXT: quant.dequantize
  // CHECK-NEXT: nn.slice %x
  // CHECK-NEXT: quant.dequantize
  // CHECK-NEXT: nn.cat %x, %x
  // CHECK-NEXT: quant.dequantize
  // CHECK-NEXT: nn.pad %x
  // CHECK-NEXT: quant.dequantize
  // CHECK-NEXT: nn.max_pool2d %x
  // CHECK-NEXT: quant.dequantize
  // CHECK-NEXT: nn.relu %x
  // CHECK-NEXT: quant.dequantize
  %d = quant.dequantize %x : !q -> !f
  %a = nn.reshape %d : !f -> tensor<6x35xf32>
  %b = nn.permute %d {dims = array<i64: 3, 2, 1, 0>} : !f -> tensor<7x5x3x2xf32>
  %c = nn.slice %d {dim = 3, start = 0, end = 7, step = 2} : !f -> tensor<2x3x5x4xf32>
  %e = nn.cat %d, %d {dim = 1} : (!f, !f) -> tensor<2x6x5x7xf32>
  %g = nn.pad %d {low = array<i64: 0, 0, 1, 0>, high = array<i64: 0, 0, 0, 0>, value = 0.0 : f32} : !f -> tensor<2x3x6x7xf32>
  %h = nn.max_pool2d %d {kernel_size = array<i64: 2, 3>, stride = array<i64: 2, 3>, padding = array<i64: 0, 1>, dilation = array<i64: 1, 1>, ceil_mode = false} : !f -> tensor<2x3x2x3xf32>
  %r = nn.relu %d : !f -> !f
  func.return %a, %b, %c, %e, %g, %h, %r : tensor<6x35xf32>, tensor<7x5x3x2xf32>, tensor<2x3x5x4xf32>, tensor<2x6x5x7xf32>, tensor<2x3x6x7xf32>, tensor<2x3x2x3xf32>, !f
}

// Down through picks, choices, writes and extremes; a constant that is exactly codes becomes them.
// CHECK-LABEL: func.func @picks
func.func @picks(%x: !q, %i: tensor<2x3x5x1xi64>, %j: tensor<2xi64>, %m: tensor<5x7xi1>, %t: tensor<11x4x!quant.uniform<i8:f32, 0.3:2>>) -> (!f, !f, !f, !f, !f, tensor<2x4xf32>, !f, tensor<2x3x5xf32>) {
  // CHECK-NEXT: [[A:%[^ ]+]] = nn.gather %x[%i]
  // CHECK-NEXT: quant.dequantize [[A]]
  // CHECK: nn.scatter %x into %x[%i] {{.*}} -> tensor<2x3x5x7x!quant.uniform<i8:f32, 0.2:5>>
  // CHECK-NEXT: quant.dequantize
  // CHECK: [[C:%[^ ]+]] = nn.constant dense<15> : tensor<!quant.uniform<i8:f32, 0.2:5>>
  // CHECK-NEXT: nn.select %m, %x, [[C]]
  // CHECK-NEXT: quant.dequantize
  // CHECK: nn.insert_slice %x into %x
  // CHECK-NEXT: quant.dequantize
  // CHECK: nn.index_copy %x into %x[%j]
  // CHECK-NEXT: quant.dequantize
  // CHECK: nn.embedding %t, %j
  // CHECK-NEXT: quant.dequantize
  // CHECK: nn.scan "max", %x
  // CHECK-NEXT: quant.dequantize
  // CHECK: nn.amin %x
  // CHECK-NEXT: quant.dequantize
  %d = quant.dequantize %x : !q -> !f
  %c = nn.constant dense<2.0> : tensor<f32>
  %a = nn.gather %d[%i] {dim = 3} : (!f, tensor<2x3x5x1xi64>) -> tensor<2x3x5x1xf32>
  %b = nn.expand %a : tensor<2x3x5x1xf32> -> !f
  %e = nn.scatter %d into %d[%i] {dim = 3, reduce = "none"} : (!f, tensor<2x3x5x1xi64>, !f) -> !f
  %g = nn.select %m, %d, %c : (tensor<5x7xi1>, !f, tensor<f32>) -> !f
  %h = nn.insert_slice %d into %d {dim = 0, start = 0, step = 1} : !f into !f -> !f
  %k = nn.index_copy %d into %d[%j] {dim = 0} : !f into !f [tensor<2xi64>] -> !f
  %u = quant.dequantize %t : tensor<11x4x!quant.uniform<i8:f32, 0.3:2>> -> tensor<11x4xf32>
  %l = nn.embedding %u, %j : (tensor<11x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  %n = nn.scan "max", %d {dim = 1} : !f -> !f
  %o = nn.amin %d {dim = array<i64: 3>, keepdim = false} : !f -> tensor<2x3x5xf32>
  func.return %b, %e, %g, %h, %k, %l, %n, %o : !f, !f, !f, !f, !f, tensor<2x4xf32>, !f, tensor<2x3x5xf32>
}

// Places and comparisons are found among codes; a sum in between is not touched.
// CHECK-LABEL: func.func @places
func.func @places(%x: !q, %y: !u) -> (tensor<2x3x5x7xi64>, tensor<2x3x5xi64>, tensor<2x3x5x7xi64>, tensor<2x3x5x7xi1>, tensor<2x3x5x7xi1>, !f) {
  // CHECK-NEXT: [[C:%[^ ]+]] = nn.constant dense<7.0{{.*}}> : tensor<f32>
  // CHECK-NEXT: nn.argsort %x
  // CHECK-NEXT: nn.argmax %x
  // CHECK-NEXT: nn.scan "argmin", %x
  // CHECK-NEXT: nn.compare "lt", %x, [[C]]
  // CHECK-NEXT: nn.compare "eq", %y, %x
  // CHECK-NEXT: [[D:%[^ ]+]] = quant.dequantize %x
  // CHECK-NEXT: nn.scan "add", [[D]]
  %c = nn.constant dense<7.0> : tensor<f32>
  %d = quant.dequantize %x : !q -> !f
  %e = quant.dequantize %y : !u -> !f
  %a = nn.argsort %d {dim = 3, descending = true} : !f -> tensor<2x3x5x7xi64>
  %b = nn.argmax %d {dim = array<i64: 3>, keepdim = false} : !f -> tensor<2x3x5xi64>
  %g = nn.scan "argmin", %d {dim = 1} : !f -> tensor<2x3x5x7xi64>
  %h = nn.compare "lt", %d, %c : (!f, tensor<f32>) -> tensor<2x3x5x7xi1>
  %i = nn.compare "eq", %e, %d : (!f, !f) -> tensor<2x3x5x7xi1>
  %f = quant.dequantize %x : !q -> !f
  %k = nn.scan "add", %f {dim = 1} : !f -> !f
  func.return %a, %b, %g, %h, %i, %k : tensor<2x3x5x7xi64>, tensor<2x3x5xi64>, tensor<2x3x5x7xi64>, tensor<2x3x5x7xi1>, tensor<2x3x5x7xi1>, !f
}

// Up through picks and choices: what picks stays as it is, constants are quantized; a table that only one op reads.
// CHECK-LABEL: func.func @up
func.func @up(%x: tensor<3x4xf32>, %m: tensor<3x4xi1>, %i: tensor<3x4xi64>, %j: tensor<5xi64>) -> (tensor<3x4x!quant.uniform<i8:f32, 0.2:5>>, tensor<5x2x!quant.uniform<i8:f32, 0.2:5>>) {
  // CHECK: [[N:%[^ ]+]] = nn.neg %x
  // CHECK: [[Q:%[^ ]+]] = quant.quantize [[N]]
  // CHECK: [[C:%[^ ]+]] = quant.quantize
  // CHECK: [[S:%[^ ]+]] = nn.select %m, [[Q]], [[C]]
  // CHECK: [[G:%[^ ]+]] = nn.gather [[S]][%i]
  // CHECK: [[T:%[^ ]+]] = quant.quantize {{.*}} : tensor<4x2xf32>
  // CHECK: [[E:%[^ ]+]] = nn.embedding [[T]], %j
  // CHECK: func.return [[G]], [[E]]
  %c = nn.constant dense<-0.37> : tensor<1xf32>
  %t = nn.constant dense<[[0.5, 1.0], [-0.7, 1.1], [1.2, 3.0], [0.0, 9.0]]> : tensor<4x2xf32>
  %n = nn.neg %x : tensor<3x4xf32> -> tensor<3x4xf32>
  %s = nn.select %m, %n, %c : (tensor<3x4xi1>, tensor<3x4xf32>, tensor<1xf32>) -> tensor<3x4xf32>
  %g = nn.gather %s[%i] {dim = 0} : (tensor<3x4xf32>, tensor<3x4xi64>) -> tensor<3x4xf32>
  %q = quant.quantize %g : tensor<3x4xf32> -> tensor<3x4x!quant.uniform<i8:f32, 0.2:5>>
  %e = nn.embedding %t, %j : (tensor<4x2xf32>, tensor<5xi64>) -> tensor<5x2xf32>
  %p = quant.quantize %e : tensor<5x2xf32> -> tensor<5x2x!quant.uniform<i8:f32, 0.2:5>>
  func.return %q, %p : tensor<3x4x!quant.uniform<i8:f32, 0.2:5>>, tensor<5x2x!quant.uniform<i8:f32, 0.2:5>>
}

// -----

// Kept: constants that are no codes, per channel, operands of two encodings, scales so large that codes stand for infinity.
// CHECK-LABEL: func.func @picks_kept
func.func @picks_kept(%x: tensor<3x4x!quant.uniform<i8:f32, 0.2:5>>, %y: tensor<3x4x!quant.uniform<i8:f32, 0.1:5>>, %z: tensor<3x4x!quant.uniform<i8:f32:0, {0.1, 0.2, 0.3}>>, %w: tensor<3x4x!quant.uniform<i8:f32, 3.0e38:5>>, %m: tensor<3x4xi1>, %i: tensor<3x4xi64>) -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi64>, tensor<3x4xi64>) {
  // CHECK-COUNT-2: nn.select {{.*}} -> tensor<3x4xf32>
  // CHECK: nn.gather {{.*}} -> tensor<3x4xf32>
  // CHECK: nn.scan "min", {{.*}} -> tensor<3x4xf32>
  // CHECK-COUNT-2: nn.argsort {{.*}} tensor<3x4xf32>
  %c = nn.constant dense<0.3> : tensor<f32>
  %d = quant.dequantize %x : tensor<3x4x!quant.uniform<i8:f32, 0.2:5>> -> tensor<3x4xf32>
  %e = quant.dequantize %y : tensor<3x4x!quant.uniform<i8:f32, 0.1:5>> -> tensor<3x4xf32>
  %f = quant.dequantize %z : tensor<3x4x!quant.uniform<i8:f32:0, {0.1, 0.2, 0.3}>> -> tensor<3x4xf32>
  %g = quant.dequantize %w : tensor<3x4x!quant.uniform<i8:f32, 3.0e38:5>> -> tensor<3x4xf32>
  // expected-remark@+1 {{a constant is not exactly codes of the encoding of the others}}
  %h = nn.select %m, %d, %c : (tensor<3x4xi1>, tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
  // expected-remark@+1 {{operands have different encodings}}
  %k = nn.select %m, %d, %e : (tensor<3x4xi1>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  // expected-remark@+1 {{the quantization axis cannot be followed}}
  %l = nn.gather %f[%i] {dim = 0} : (tensor<3x4xf32>, tensor<3x4xi64>) -> tensor<3x4xf32>
  // expected-remark@+1 {{codes do not stand for numbers in their order}}
  %n = nn.scan "min", %g {dim = 1} : tensor<3x4xf32> -> tensor<3x4xf32>
  // expected-remark@+1 {{codes do not stand for numbers in their order}}
  %o = nn.argsort %g {dim = 1, descending = false} : tensor<3x4xf32> -> tensor<3x4xi64>
  // expected-remark@+1 {{operand is not quantized per tensor}}
  %p = nn.argsort %f {dim = 1, descending = false} : tensor<3x4xf32> -> tensor<3x4xi64>
  func.return %h, %k, %l, %n, %o, %p : tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi64>, tensor<3x4xi64>
}

// -----

!q = tensor<2x3x5x7x!quant.uniform<i8:f32, 0.2:5>>
!f = tensor<2x3x5x7xf32>
!u = tensor<2x3x5x7x!quant.uniform<u8:f32, 0.2:5>>

// Through several, until they meet.
// CHECK-LABEL: func.func @through
func.func @through(%x: !q) -> tensor<35x6x!quant.uniform<i8:f32, 0.2:5>> {
  // CHECK-NEXT: [[A:%[^ ]+]] = nn.reshape %x
  // CHECK-NEXT: [[B:%[^ ]+]] = nn.permute [[A]]
  // CHECK-NEXT: func.return [[B]]
  %d = quant.dequantize %x : !q -> !f
  %a = nn.reshape %d : !f -> tensor<6x35xf32>
  %b = nn.permute %a {dims = array<i64: 1, 0>} : tensor<6x35xf32> -> tensor<35x6xf32>
  %c = quant.quantize %b : tensor<35x6xf32> -> tensor<35x6x!quant.uniform<i8:f32, 0.2:5>>
  func.return %c : tensor<35x6x!quant.uniform<i8:f32, 0.2:5>>
}

// The quantization axis follows, by a permutation that is not its own inverse; scales are cut with the slice.
// CHECK-LABEL: func.func @axis
func.func @axis(%w: tensor<2x3x5x!quant.uniform<i8:f32:1, {0.5, 0.25, 0.1}>>) -> (tensor<3x5x2xf32>, tensor<2x3x1x5xf32>, tensor<2x2x5xf32>) {
  // CHECK-NEXT: nn.permute %w {{.*}} -> tensor<3x5x2x!quant.uniform<i8:f32:0, {0.5, 0.25, 0.1}>>
  // CHECK-NEXT: quant.dequantize
  // CHECK-NEXT: nn.reshape %w {{.*}} -> tensor<2x3x1x5x!quant.uniform<i8:f32:1, {0.5, 0.25, 0.1}>>
  // CHECK-NEXT: quant.dequantize
  // CHECK-NEXT: nn.slice %w {{.*}} -> tensor<2x2x5x!quant.uniform<i8:f32:1, {0.5, 0.1}>>
  // CHECK-NEXT: quant.dequantize
  %d = quant.dequantize %w : tensor<2x3x5x!quant.uniform<i8:f32:1, {0.5, 0.25, 0.1}>> -> tensor<2x3x5xf32>
  %a = nn.permute %d {dims = array<i64: 1, 2, 0>} : tensor<2x3x5xf32> -> tensor<3x5x2xf32>
  %b = nn.reshape %d : tensor<2x3x5xf32> -> tensor<2x3x1x5xf32>
  %c = nn.slice %d {dim = 1, start = 0, end = 3, step = 2} : tensor<2x3x5xf32> -> tensor<2x2x5xf32>
  func.return %a, %b, %c : tensor<3x5x2xf32>, tensor<2x3x1x5xf32>, tensor<2x2x5xf32>
}

// Up to the op that computes the value; with cat, to each operand.
// CHECK-LABEL: func.func @hoist
func.func @hoist(%x: !f, %y: !q) -> (tensor<6x35x!quant.uniform<u8:f32, 0.2:5>>, tensor<2x6x5x7x!quant.uniform<u8:f32, 0.2:5>>) {
  // CHECK-NEXT: [[S:%[^ ]+]] = nn.sigmoid %x
  // CHECK-NEXT: [[Q:%[^ ]+]] = quant.quantize [[S]] {recipe = f32} : {{.*}} -> tensor<2x3x5x7x!quant.uniform<u8:f32, 0.2:5>>
  // CHECK-NEXT: [[R:%[^ ]+]] = nn.reshape [[Q]]
  // CHECK-NEXT: [[T:%[^ ]+]] = nn.tanh %x
  // CHECK-NEXT: [[U:%[^ ]+]] = quant.quantize [[T]]
  // CHECK-NEXT: [[V:%[^ ]+]] = quant.requantize %y
  // CHECK-NEXT: [[C:%[^ ]+]] = nn.cat [[U]], [[V]]
  // CHECK-NEXT: func.return [[R]], [[C]]
  %s = nn.sigmoid %x : !f -> !f
  %a = nn.reshape %s : !f -> tensor<6x35xf32>
  %q = quant.quantize %a {recipe = f32} : tensor<6x35xf32> -> tensor<6x35x!quant.uniform<u8:f32, 0.2:5>>
  %t = nn.tanh %x : !f -> !f
  %d = quant.dequantize %y : !q -> !f
  %c = nn.cat %t, %d {dim = 1} : (!f, !f) -> tensor<2x6x5x7xf32>
  %p = quant.quantize %c : tensor<2x6x5x7xf32> -> tensor<2x6x5x7x!quant.uniform<u8:f32, 0.2:5>>
  func.return %q, %p : tensor<6x35x!quant.uniform<u8:f32, 0.2:5>>, tensor<2x6x5x7x!quant.uniform<u8:f32, 0.2:5>>
}

// -----

!q = tensor<2x3x!quant.uniform<i8:f32, 0.2:5>>
!f = tensor<2x3xf32>

// Must not meet: per channel and otherwise encoded.
// CHECK-LABEL: func.func @per_channel
func.func @per_channel(%x: tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>) -> (!q, tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>) {
  // CHECK: quant.dequantize
  // CHECK: [[Q:%[^ ]+]] = quant.quantize
  // CHECK: func.return [[Q]], %x
  %d = quant.dequantize %x : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>> -> !f
  // expected-remark@+1 {{MeetDequantize refused 'quant.quantize': encodings differ and are not both per tensor}}
  %a = quant.quantize %d : !f -> !q
  %b = quant.quantize %d : !f -> tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  func.return %a, %b : !q, tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
}

// A scale whose reciprocal is not finite in float32: quantize does not undo dequantize, a requantize keeps the numbers.
// CHECK-LABEL: func.func @not_undone
func.func @not_undone(%x: tensor<2x3x!quant.uniform<i8:f32, 1.0e-44:5>>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0e-44:5>> {
  // CHECK-NEXT: quant.requantize %x
  %d = quant.dequantize %x : tensor<2x3x!quant.uniform<i8:f32, 1.0e-44:5>> -> !f
  %a = quant.quantize %d : !f -> tensor<2x3x!quant.uniform<i8:f32, 1.0e-44:5>>
  func.return %a : tensor<2x3x!quant.uniform<i8:f32, 1.0e-44:5>>
}

// Must not sink: different encodings, a padding that is no code (0.1) or not that zero (-0.0), an axis that is lost,
// a relu that a quantize follows, an average.
// CHECK-LABEL: func.func @keep
func.func @keep(%x: !q, %y: tensor<2x3x!quant.uniform<i8:f32, 0.3:5>>, %w: tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>) -> (tensor<4x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>, tensor<6xf32>, !q, tensor<2xf32>) {
  // CHECK: nn.cat {{.*}}xf32
  // CHECK: nn.pad {{.*}}xf32
  // CHECK: nn.pad {{.*}}xf32
  // CHECK: nn.reshape {{.*}}xf32
  // CHECK: nn.relu {{.*}}xf32
  // CHECK: nn.mean {{.*}}xf32
  %d = quant.dequantize %x : !q -> !f
  %e = quant.dequantize %y : tensor<2x3x!quant.uniform<i8:f32, 0.3:5>> -> !f
  // expected-remark@+1 {{SinkDequantize refused 'nn.cat': operands have different encodings}}
  %c = nn.cat %d, %e {dim = 0} : (!f, !f) -> tensor<4x3xf32>
  // expected-remark@+1 {{is not exactly a code}}
  %g = nn.pad %d {low = array<i64: 1, 0>, high = array<i64: 0, 0>, value = 0.1 : f32} : !f -> tensor<3x3xf32>
  // expected-remark@+1 {{the padding value -0.0 is not exactly a code}}
  %h = nn.pad %d {low = array<i64: 1, 0>, high = array<i64: 0, 0>, value = -0.0 : f32} : !f -> tensor<3x3xf32>
  %v = quant.dequantize %w : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>> -> !f
  // expected-remark@+1 {{the quantization axis cannot be followed}}
  %a = nn.reshape %v : !f -> tensor<6xf32>
  %r = nn.relu %d : !f -> !f
  %q = quant.quantize %r : !f -> !q
  %m = nn.mean %d {dim = array<i64: 1>, keepdim = false} : !f -> tensor<2xf32>
  func.return %c, %g, %h, %a, %q, %m : tensor<4x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>, tensor<6xf32>, !q, tensor<2xf32>
}

// Must not hoist: an argument; another use of the moved value or of the operand; per channel.
// CHECK-LABEL: func.func @stay
func.func @stay(%x: !f) -> (tensor<6x!quant.uniform<i8:f32, 0.2:5>>, tensor<6x!quant.uniform<i8:f32, 0.2:5>>, tensor<6xf32>, tensor<6x!quant.uniform<i8:f32, 0.2:5>>, !f, tensor<3x2x!quant.uniform<i8:f32:1, {0.5, 0.25}>>) {
  // CHECK: nn.reshape {{.*}}xf32
  // CHECK: nn.reshape {{.*}}xf32
  // CHECK: nn.reshape {{.*}}xf32
  // CHECK: nn.permute {{.*}}xf32
  %a = nn.reshape %x : !f -> tensor<6xf32>
  %q = quant.quantize %a : tensor<6xf32> -> tensor<6x!quant.uniform<i8:f32, 0.2:5>>
  %s = nn.sigmoid %x : !f -> !f
  %b = nn.reshape %s : !f -> tensor<6xf32>
  // expected-remark@+1 {{the result of nn.reshape has other uses}}
  %p = quant.quantize %b : tensor<6xf32> -> tensor<6x!quant.uniform<i8:f32, 0.2:5>>
  %t = nn.tanh %x : !f -> !f
  %c = nn.reshape %t : !f -> tensor<6xf32>
  // expected-remark@+1 {{an operand of nn.reshape has other uses}}
  %o = quant.quantize %c : tensor<6xf32> -> tensor<6x!quant.uniform<i8:f32, 0.2:5>>
  %n = nn.neg %x : !f -> !f
  %e = nn.permute %n {dims = array<i64: 1, 0>} : !f -> tensor<3x2xf32>
  // expected-remark@+1 {{the result is quantized per channel}}
  %g = quant.quantize %e : tensor<3x2xf32> -> tensor<3x2x!quant.uniform<i8:f32:1, {0.5, 0.25}>>
  func.return %q, %p, %b, %o, %t, %g : tensor<6x!quant.uniform<i8:f32, 0.2:5>>, tensor<6x!quant.uniform<i8:f32, 0.2:5>>, tensor<6xf32>, tensor<6x!quant.uniform<i8:f32, 0.2:5>>, !f, tensor<3x2x!quant.uniform<i8:f32:1, {0.5, 0.25}>>
}

// A weight quantized along one of two dimensions that become one: the scales are repeated (a grouped transposed
// convolution is imported so).
// CHECK-LABEL: func.func @merged_axis(
// CHECK:         quant.dequantize %{{.*}} : tensor<4x5x!quant.uniform<i8:f32:0, {0.5, 0.25, 0.5, 0.25}>> -> tensor<4x5xf32>
func.func @merged_axis(%x: tensor<2x2x5x!quant.uniform<i8:f32:1, {0.5, 0.25}>>) -> tensor<4x5xf32> {
  %d = quant.dequantize %x : tensor<2x2x5x!quant.uniform<i8:f32:1, {0.5, 0.25}>> -> tensor<2x2x5xf32>
  %r = nn.reshape %d : tensor<2x2x5xf32> -> tensor<4x5xf32>
  func.return %r : tensor<4x5xf32>
}

// -----

func.func @error(%x: tensor<2x3x!quant.uniform<i8:f32, 0.2:5>>) -> tensor<2x3x!quant.uniform<i8:f16, 0.2:5>> {
  // expected-error@+1 {{elements are f32, the type expresses f16}}
  %a = quant.requantize %x : tensor<2x3x!quant.uniform<i8:f32, 0.2:5>> -> tensor<2x3x!quant.uniform<i8:f16, 0.2:5>>
  func.return %a : tensor<2x3x!quant.uniform<i8:f16, 0.2:5>>
}
