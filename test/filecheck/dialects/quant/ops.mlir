// RUN: qcomp-opt %s | filecheck %s
// RUN: qcomp-opt %s | qcomp-opt | filecheck %s
// RUN: qcomp-opt %s --print-op-generic | qcomp-opt | filecheck %s

// CHECK-LABEL: func.func @observe(
// CHECK-NEXT:    %a = quant.observe %x : tensor<2x3xf32> as !quant.uniform<u8:f32, 0.0235:114>
// CHECK-NEXT:    %b = quant.observe %a {recipe = f32} : tensor<2x3xf32> as !quant.uniform<i8<-127:127>:f32:1, {0.25, 0.5, 0.125}>
func.func @observe(%x: tensor<2x3xf32>) {
  %a = quant.observe %x : tensor<2x3xf32> as !quant.uniform<u8:f32, 0.0235:114>
  %b = quant.observe %a {recipe = f32} : tensor<2x3xf32> as !quant.uniform<i8<-127:127>:f32:1, {0.25, 0.5, 0.125}>
  func.return
}

// CHECK-LABEL: func.func @quantize(
// CHECK-NEXT:    %a = quant.quantize %x : tensor<2x3xf32> -> tensor<2x3x!quant.uniform<u8:f32, 0.0235:114>>
// CHECK-NEXT:    %b = quant.quantize %x {recipe = f64} : tensor<2x3xf32> -> tensor<2x3x!quant.uniform<i8<-127:127>:f32:1, {0.25, 0.5, 0.125}>>
// CHECK-NEXT:    %c = quant.quantize %h {recipe = f32} : tensor<2x3xbf16> -> tensor<2x3x!quant.uniform<i16:bf16, 0.5:-1000>>
func.func @quantize(%x: tensor<2x3xf32>, %h: tensor<2x3xbf16>) {
  %a = quant.quantize %x : tensor<2x3xf32> -> tensor<2x3x!quant.uniform<u8:f32, 0.0235:114>>
  %b = quant.quantize %x {recipe = f64} : tensor<2x3xf32> -> tensor<2x3x!quant.uniform<i8<-127:127>:f32:1, {0.25, 0.5, 0.125}>>
  %c = quant.quantize %h {recipe = f32} : tensor<2x3xbf16> -> tensor<2x3x!quant.uniform<i16:bf16, 0.5:-1000>>
  func.return
}

// CHECK-LABEL: func.func @dequantize(
// CHECK-NEXT:    %a = quant.dequantize %x : tensor<2x3x!quant.uniform<u8:f32, 0.0235:114>> -> tensor<2x3xf32>
// CHECK-NEXT:    %b = quant.dequantize %y : tensor<?x3x!quant.uniform<i8<-127:127>:f32:1, {0.25, 0.5, 0.125}>> -> tensor<?x3xf32>
func.func @dequantize(%x: tensor<2x3x!quant.uniform<u8:f32, 0.0235:114>>,
                      %y: tensor<?x3x!quant.uniform<i8<-127:127>:f32:1, {0.25, 0.5, 0.125}>>) {
  %a = quant.dequantize %x : tensor<2x3x!quant.uniform<u8:f32, 0.0235:114>> -> tensor<2x3xf32>
  %b = quant.dequantize %y : tensor<?x3x!quant.uniform<i8<-127:127>:f32:1, {0.25, 0.5, 0.125}>> -> tensor<?x3xf32>
  func.return
}

// CHECK-LABEL: func.func @requantize(
// CHECK-NEXT:    %a = quant.requantize %x {recipe = f64} : tensor<2x3x!quant.uniform<u8:f32, 0.0235:114>> -> tensor<2x3x!quant.uniform<i8:f32, 0.1:-7>>
// CHECK-NEXT:    %b = quant.requantize %a : tensor<2x3x!quant.uniform<i8:f32, 0.1:-7>> -> tensor<2x3x!quant.uniform<i8<-127:127>:f32:1, {0.25, 0.5, 0.125}>>
func.func @requantize(%x: tensor<2x3x!quant.uniform<u8:f32, 0.0235:114>>) {
  %a = quant.requantize %x {recipe = f64} : tensor<2x3x!quant.uniform<u8:f32, 0.0235:114>> -> tensor<2x3x!quant.uniform<i8:f32, 0.1:-7>>
  %b = quant.requantize %a : tensor<2x3x!quant.uniform<i8:f32, 0.1:-7>> -> tensor<2x3x!quant.uniform<i8<-127:127>:f32:1, {0.25, 0.5, 0.125}>>
  func.return
}

// CHECK-LABEL: func.func @cast_storage(
// CHECK-NEXT:    %a = quant.cast_storage %x : tensor<2x3x!quant.uniform<u8:f32, 0.0235:114>> to tensor<2x3xui8>
// CHECK-NEXT:    %b = quant.cast_storage %y : tensor<2x3xi8> to tensor<2x3x!quant.uniform<i8<-127:127>:f32:1, {0.25, 0.5, 0.125}>>
func.func @cast_storage(%x: tensor<2x3x!quant.uniform<u8:f32, 0.0235:114>>, %y: tensor<2x3xi8>) {
  %a = quant.cast_storage %x : tensor<2x3x!quant.uniform<u8:f32, 0.0235:114>> to tensor<2x3xui8>
  %b = quant.cast_storage %y : tensor<2x3xi8> to tensor<2x3x!quant.uniform<i8<-127:127>:f32:1, {0.25, 0.5, 0.125}>>
  func.return
}
