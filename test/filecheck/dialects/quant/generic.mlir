// RUN: qcomp-opt %s --print-op-generic | filecheck %s
// RUN: qcomp-opt %s --print-op-generic | qcomp-opt --print-op-generic | filecheck %s

// CHECK-LABEL: "func.func"() <{sym_name = "f"
func.func @f(%x: tensor<2x3xf32>) {
  // CHECK:      [[O:%.*]] = "quant.observe"(%x) <{recipe = f32, encoding = !quant.uniform<u8:f32, 0.5:3>}>
  // CHECK-SAME: (tensor<2x3xf32>) -> tensor<2x3xf32>
  %o = quant.observe %x {recipe = f32} : tensor<2x3xf32> as !quant.uniform<u8:f32, 0.5:3>
  // CHECK-NEXT: [[Q:%.*]] = "quant.quantize"([[O]]) <{recipe = f64}>
  // CHECK-SAME: -> tensor<2x3x!quant.uniform<i4:f32:0, {0.5, 0.25:-8}>>
  %q = quant.quantize %o {recipe = f64} : tensor<2x3xf32> -> tensor<2x3x!quant.uniform<i4:f32:0, {0.5, 0.25:-8}>>
  // CHECK-NEXT: "quant.dequantize"([[Q]]) :
  %d = quant.dequantize %q : tensor<2x3x!quant.uniform<i4:f32:0, {0.5, 0.25:-8}>> -> tensor<2x3xf32>
  func.return
}
