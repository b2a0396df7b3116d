// RUN: qcomp-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{quantization axis 2 is outside rank 2}}
  %t = quant.observe %x : tensor<2x3xf32> as !quant.uniform<i8:f32:2, {0.5, 0.25, 1.0}>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{2 scales for dimension 1 of size 3}}
  %t = quant.observe %x : tensor<2x3xf32> as !quant.uniform<i8:f32:1, {0.5, 0.25}>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{a quantization block axis is outside rank 2}}
  %t = quant.observe %x : tensor<2x3xf32> as !quant.uniform<i8:f32:{0:1, 2:1}, {{0.5}, {0.25}}>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{scales of shape [2, 1] do not divide [2, 3] into blocks}}
  %t = quant.observe %x : tensor<2x3xf32> as !quant.uniform<i8:f32:{0:1, 1:2}, {{0.5}, {0.25}}>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{scales of shape [2, 2] do not divide [2, 3] into blocks}}
  %t = quant.observe %x : tensor<2x3xf32> as !quant.uniform<i8:f32:{0:1, 1:3}, {{0.5, 0.5}, {0.25, 0.25}}>
  func.return
}
