// RUN: qcomp-opt %s --print-op-generic | filecheck %s
// RUN: qcomp-opt %s --print-op-generic | qcomp-opt --print-op-generic | filecheck %s

// CHECK-LABEL: "func.func"() <{sym_name = "f"
func.func @f(%x: tensor<1x2x5x4xf32>, %w: tensor<3x2x1x1xf32>, %b: tensor<3xf32>) {
  // CHECK:      [[C:%.*]] = "nn.conv2d"(%x, %w, %b) <{stride = array<i64: 1, 2>, padding = array<i64: 0, 0>,
  // CHECK-SAME: dilation = array<i64: 1, 1>, groups = 1 : i64, activation = #nn.clamp<0.000000e+00 : f32,
  // CHECK-SAME: operandSegmentSizes = array<i32: 1, 1, 1, 0>}>
  %c = nn.conv2d %x, %w bias(%b) {stride = array<i64: 1, 2>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>,
    groups = 1 : i64, activation = #nn.clamp<0.0 : f32, 6.0 : f32>}
    : (tensor<1x2x5x4xf32>, tensor<3x2x1x1xf32>, tensor<3xf32>) -> tensor<1x3x5x2xf32>
  // CHECK-NEXT: "nn.constant"() <{value = #nn.data<dense<[1, 2]> : tensor<2xui8>>}>
  // CHECK-SAME: () -> tensor<2x!quant.uniform<u8:f32, 0.5>>
  %q = nn.constant dense<[1, 2]> : tensor<2x!quant.uniform<u8:f32, 0.5>>
  // CHECK-NEXT: "nn.cat"([[C]], [[C]], [[C]]) <{dim = 3 : i64}>
  %d = nn.cat %c, %c, %c {dim = 3 : i64}
    : (tensor<1x3x5x2xf32>, tensor<1x3x5x2xf32>, tensor<1x3x5x2xf32>) -> tensor<1x3x5x6xf32>
  func.return
}
