// RUN: qcomp-opt %s | filecheck %s
// RUN: qcomp-opt %s | qcomp-opt | filecheck %s
// RUN: qcomp-opt %s --print-op-generic | qcomp-opt | filecheck %s

// CHECK-LABEL: func.func @dynamic_linear(
// CHECK-NEXT:    %y = nn.dynamic_linear %x, %s, %z, %w : (tensor<2x3xi8>, tensor<f32>, tensor<i32>, tensor<4x3x!quant.uniform<i8:f32, 0.5>>) -> tensor<2x4xf32>
// CHECK-NEXT:    %t = nn.dynamic_linear %x, %sr, %zr, %w bias(%b) {activation = #nn.relu} : (tensor<2x3xi8>, tensor<2x1xf32>, tensor<2x1xi32>, tensor<4x3x!quant.uniform<i8:f32, 0.5>>, tensor<4xf32>) -> tensor<2x4xf32>
func.func @dynamic_linear(%x: tensor<2x3xi8>, %s: tensor<f32>, %z: tensor<i32>, %sr: tensor<2x1xf32>, %zr: tensor<2x1xi32>,
                          %w: tensor<4x3x!quant.uniform<i8:f32, 0.5>>, %b: tensor<4xf32>) {
  %y = nn.dynamic_linear %x, %s, %z, %w : (tensor<2x3xi8>, tensor<f32>, tensor<i32>, tensor<4x3x!quant.uniform<i8:f32, 0.5>>) -> tensor<2x4xf32>
  %t = nn.dynamic_linear %x, %sr, %zr, %w bias(%b) {activation = #nn.relu} : (tensor<2x3xi8>, tensor<2x1xf32>, tensor<2x1xi32>, tensor<4x3x!quant.uniform<i8:f32, 0.5>>, tensor<4xf32>) -> tensor<2x4xf32>
  func.return
}
