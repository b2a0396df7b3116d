// RUN: qcomp-opt %s | filecheck %s
// RUN: qcomp-opt %s | qcomp-opt | filecheck %s
// RUN: qcomp-opt %s --print-op-generic | qcomp-opt | filecheck %s

// CHECK-LABEL: func.func @functions(
// CHECK-NEXT:    %log = nn.function %x {function = "log"} : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %elu = nn.function %x {function = "elu", parameters = array<f64: 1.000000e-01, 1.0507009873554805, 1.000000e+00>} : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %not = nn.function %i {function = "bitwise_not"} : tensor<2x3xi16> -> tensor<2x3xi16>
// CHECK-NEXT:    %other = nn.function %b {function = "bitwise_not"} : tensor<3xi1> -> tensor<3xi1>
func.func @functions(%x: tensor<2x3xf32>, %i: tensor<2x3xi16>, %b: tensor<3xi1>) {
  %log = nn.function %x {function = "log"} : tensor<2x3xf32> -> tensor<2x3xf32>
  %elu = nn.function %x {function = "elu", parameters = array<f64: 0.1, 1.0507009873554805, 1.0>} : tensor<2x3xf32> -> tensor<2x3xf32>
  %not = nn.function %i {function = "bitwise_not"} : tensor<2x3xi16> -> tensor<2x3xi16>
  %other = nn.function %b {function = "bitwise_not"} : tensor<3xi1> -> tensor<3xi1>
  func.return
}

// CHECK-LABEL: func.func @quantized_function(
// CHECK-NEXT:    %sin = nn.function %x {function = "sin", recipe = f32} : tensor<2x3x!quant.uniform<u8:f32, 0.0235:114>> -> tensor<2x3x!quant.uniform<i8:f32, 0.0078125>>
func.func @quantized_function(%x: tensor<2x3x!quant.uniform<u8:f32, 0.0235:114>>) {
  %sin = nn.function %x {function = "sin", recipe = f32} : tensor<2x3x!quant.uniform<u8:f32, 0.0235:114>> -> tensor<2x3x!quant.uniform<i8:f32, 0.0078125>>
  func.return
}

// CHECK-LABEL: func.func @binary(
// CHECK-NEXT:    %pow = nn.binary %x, %y {function = "pow"} : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    %and = nn.binary %i, %j {function = "and"} : (tensor<4xi64>, tensor<i64>) -> tensor<4xi64>
// CHECK-NEXT:    %relu = nn.binary %y, %y {function = "fmod", activation = #nn.relu} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
func.func @binary(%x: tensor<2x1xf32>, %y: tensor<3xf32>, %i: tensor<4xi64>, %j: tensor<i64>) {
  %pow = nn.binary %x, %y {function = "pow"} : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %and = nn.binary %i, %j {function = "and"} : (tensor<4xi64>, tensor<i64>) -> tensor<4xi64>
  %relu = nn.binary %y, %y {function = "fmod", activation = #nn.relu} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return
}

// CHECK-LABEL: func.func @choice(
// CHECK-NEXT:    %less = nn.compare "lt", %x, %y : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xi1>
// CHECK-NEXT:    %equal = nn.compare "eq", %q, %y : (tensor<3x!quant.uniform<i8:f32, 0.5:3>>, tensor<3xf32>) -> tensor<3xi1>
// CHECK-NEXT:    %chosen = nn.select %less, %x, %y : (tensor<2x3xi1>, tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    %codes = nn.select %equal, %q, %q : (tensor<3xi1>, tensor<3x!quant.uniform<i8:f32, 0.5:3>>, tensor<3x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<3x!quant.uniform<i8:f32, 0.5:3>>
func.func @choice(%x: tensor<2x1xf32>, %y: tensor<3xf32>, %q: tensor<3x!quant.uniform<i8:f32, 0.5:3>>) {
  %less = nn.compare "lt", %x, %y : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  %equal = nn.compare "eq", %q, %y : (tensor<3x!quant.uniform<i8:f32, 0.5:3>>, tensor<3xf32>) -> tensor<3xi1>
  %chosen = nn.select %less, %x, %y : (tensor<2x3xi1>, tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %codes = nn.select %equal, %q, %q : (tensor<3xi1>, tensor<3x!quant.uniform<i8:f32, 0.5:3>>, tensor<3x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<3x!quant.uniform<i8:f32, 0.5:3>>
  func.return
}
