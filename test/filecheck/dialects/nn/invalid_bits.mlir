// RUN: qcomp-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<3x!quant.uniform<u8:f32, 0.5:3>>) {
  // expected-error@+1 {{bits of codes}}
  %t = nn.bitcast %x : tensor<3x!quant.uniform<u8:f32, 0.5:3>> -> tensor<3xi8>
  func.return
}

// -----

func.func @f(%x: tensor<3xui8>) {
  // expected-error@+1 {{bits of ui8 are not seen as i1}}
  %t = nn.bitcast %x : tensor<3xui8> -> tensor<3xi1>
  func.return
}

// -----

func.func @f(%x: tensor<f32>) {
  // expected-error@+1 {{a number of f32 has no dimension for elements of i8}}
  %t = nn.bitcast %x : tensor<f32> -> tensor<i8>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xi8>) {
  // expected-error@+1 {{3 elements of i8 are no whole number of i16}}
  %t = nn.bitcast %x : tensor<2x3xi8> -> tensor<2x1xi16>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{result has shape [2, 3], inferred is [2, 6]}}
  %t = nn.bitcast %x : tensor<2x3xf32> -> tensor<2x3xi16>
  func.return
}
