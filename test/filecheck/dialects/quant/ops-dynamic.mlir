// RUN: qcomp-opt %s | filecheck %s
// RUN: qcomp-opt %s | qcomp-opt | filecheck %s
// RUN: qcomp-opt %s --print-op-generic | qcomp-opt | filecheck %s

// CHECK-LABEL: func.func @observe(
// CHECK-NEXT:    %a = quant.observe_dynamic %x {qmin = -128 : i64, qmax = 127 : i64, floor = 2.500000e-04 : f32} : tensor<2x3xf32> as i8
// CHECK-NEXT:    %b = quant.observe_dynamic %a {qmin = 0 : i64, qmax = 255 : i64, floor = 2.500000e-04 : f32, symmetric} : tensor<2x3xf32> as ui8
// CHECK-NEXT:    %c = quant.observe %b : tensor<2x3xf32> as f16
func.func @observe(%x: tensor<2x3xf32>) {
  %a = quant.observe_dynamic %x {qmin = -128, qmax = 127, floor = 2.5e-04 : f32} : tensor<2x3xf32> as i8
  %b = quant.observe_dynamic %a {qmin = 0, qmax = 255, floor = 2.5e-04 : f32, symmetric} : tensor<2x3xf32> as ui8
  %c = quant.observe %b : tensor<2x3xf32> as f16
  func.return
}

// CHECK-LABEL: func.func @choose(
// CHECK-NEXT:    %s = quant.choose_scale %l, %h {divisor = 2.550000e+02 : f32, floor = 2.500000e-04 : f32} : tensor<2x1xf32>
// CHECK-NEXT:    %t = quant.choose_scale %l, %h {divisor = 1.275000e+02 : f32, floor = 2.500000e-04 : f32, symmetric} : tensor<2x1xf32>
// CHECK-NEXT:    %z = quant.choose_zero_point %l, %h, %s {qmin = -128 : i64, qmax = 127 : i64} : tensor<2x1xf32> -> tensor<2x1xi32>
// CHECK-NEXT:    %w = quant.choose_zero_point %l, %h, %s {qmin = -128 : i64, qmax = 127 : i64, nearest} : tensor<2x1xf32> -> tensor<2x1xi32>
func.func @choose(%l: tensor<2x1xf32>, %h: tensor<2x1xf32>) {
  %s = quant.choose_scale %l, %h {divisor = 255.0 : f32, floor = 2.5e-04 : f32} : tensor<2x1xf32>
  %t = quant.choose_scale %l, %h {divisor = 127.5 : f32, floor = 2.5e-04 : f32, symmetric} : tensor<2x1xf32>
  %z = quant.choose_zero_point %l, %h, %s {qmin = -128, qmax = 127} : tensor<2x1xf32> -> tensor<2x1xi32>
  %w = quant.choose_zero_point %l, %h, %s {qmin = -128, qmax = 127, nearest} : tensor<2x1xf32> -> tensor<2x1xi32>
  func.return
}

// CHECK-LABEL: func.func @quantize(
// CHECK-NEXT:    %q = quant.quantize_dynamic %x, %s, %z {qmin = -128 : i64, qmax = 127 : i64} : (tensor<2x3xf32>, tensor<2x1xf32>, tensor<2x1xi32>) -> tensor<2x3xi8>
// CHECK-NEXT:    %r = quant.quantize_dynamic %x, %s, %z {qmin = 0 : i64, qmax = 255 : i64, nan = 128 : i64, recipe = f64} : (tensor<2x3xf32>, tensor<2x1xf32>, tensor<2x1xi32>) -> tensor<2x3xui8>
// CHECK-NEXT:    %d = quant.dequantize_dynamic %q, %s, %z : (tensor<2x3xi8>, tensor<2x1xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
// CHECK-NEXT:    %e = quant.dequantize_dynamic %r, %p, %f : (tensor<2x3xui8>, tensor<f32>, tensor<3xf32>) -> tensor<2x3xf32>
func.func @quantize(%x: tensor<2x3xf32>, %s: tensor<2x1xf32>, %z: tensor<2x1xi32>, %p: tensor<f32>, %f: tensor<3xf32>) {
  %q = quant.quantize_dynamic %x, %s, %z {qmin = -128, qmax = 127} : (tensor<2x3xf32>, tensor<2x1xf32>, tensor<2x1xi32>) -> tensor<2x3xi8>
  %r = quant.quantize_dynamic %x, %s, %z {qmin = 0, qmax = 255, nan = 128, recipe = f64} : (tensor<2x3xf32>, tensor<2x1xf32>, tensor<2x1xi32>) -> tensor<2x3xui8>
  %d = quant.dequantize_dynamic %q, %s, %z : (tensor<2x3xi8>, tensor<2x1xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  %e = quant.dequantize_dynamic %r, %p, %f : (tensor<2x3xui8>, tensor<f32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return
}
