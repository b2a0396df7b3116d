// RUN: qcomp-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{expected a quantized type, got i8}}
  %t = quant.observe %x : tensor<2x3xf32> as i8
  func.return
}

// -----

func.func @f(%x: tensor<2x3xbf16>) {
  // expected-error@+1 {{elements are bf16, the type expresses f32}}
  %t = quant.observe %x : tensor<2x3xbf16> as !quant.uniform<u8:f32, 0.5:3>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{expected a quantized tensor type, got tensor<2x3xi8>}}
  %t = quant.quantize %x : tensor<2x3xf32> -> tensor<2x3xi8>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{shapes differ: [3, 2] and [2, 3]}}
  %t = quant.quantize %x : tensor<2x3xf32> -> tensor<3x2x!quant.uniform<u8:f32, 0.5:3>>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf64>) {
  // expected-error@+1 {{elements are f64, the type expresses f32}}
  %t = quant.quantize %x : tensor<2x3xf64> -> tensor<2x3x!quant.uniform<u8:f32, 0.5:3>>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{2 scales for dimension 1 of size 3}}
  %t = quant.quantize %x : tensor<2x3xf32> -> tensor<2x3x!quant.uniform<i8:f32:1, {0.5, 0.25}>>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xi8>) {
  // expected-error@+1 {{expected a quantized tensor type, got tensor<2x3xi8>}}
  %t = quant.dequantize %x : tensor<2x3xi8> -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3x!quant.uniform<u8:f32, 0.5:3>>) {
  // expected-error@+1 {{elements are f16, the type expresses f32}}
  %t = quant.dequantize %x : tensor<2x3x!quant.uniform<u8:f32, 0.5:3>> -> tensor<2x3xf16>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{expected a quantized tensor type, got tensor<2x3xf32>}}
  %t = quant.requantize %x : tensor<2x3xf32> -> tensor<2x3x!quant.uniform<u8:f32, 0.5:3>>
  func.return
}

// -----

func.func @f(%x: tensor<2x3x!quant.uniform<u8:f32, 0.5:3>>) {
  // expected-error@+1 {{elements are f32, the type expresses bf16}}
  %t = quant.requantize %x : tensor<2x3x!quant.uniform<u8:f32, 0.5:3>> -> tensor<2x3x!quant.uniform<i8:bf16, 0.5>>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xi8>) {
  // expected-error@+1 {{exactly one of operand and result must be quantized}}
  %t = quant.cast_storage %x : tensor<2x3xi8> to tensor<2x3xi8>
  func.return
}

// -----

func.func @f(%x: tensor<2x3x!quant.uniform<u8:f32, 0.5:3>>) {
  // expected-error@+1 {{exactly one of operand and result must be quantized}}
  %t = quant.cast_storage %x : tensor<2x3x!quant.uniform<u8:f32, 0.5:3>> to tensor<2x3x!quant.uniform<u8:f32, 0.5:3>>
  func.return
}

// -----

func.func @f(%x: tensor<2x3x!quant.uniform<u8:f32, 0.5:3>>) {
  // expected-error@+1 {{storage differs: tensor<2x3xui8> and tensor<2x3xi8>}}
  %t = quant.cast_storage %x : tensor<2x3x!quant.uniform<u8:f32, 0.5:3>> to tensor<2x3xi8>
  func.return
}
