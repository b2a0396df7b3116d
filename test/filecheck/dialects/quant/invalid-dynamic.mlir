// RUN: qcomp-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x3xf16>) {
  // expected-error@+1 {{the value must be f32, is f16}}
  %a = quant.observe_dynamic %x {qmin = -128, qmax = 127, floor = 2.5e-04 : f32} : tensor<2x3xf16> as i8
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{codes are held as i4, not in 8, 16 or 32 bits}}
  %a = quant.observe_dynamic %x {qmin = -8, qmax = 7, floor = 2.5e-04 : f32} : tensor<2x3xf32> as i4
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{codes <-128:128> do not fit i8}}
  %a = quant.observe_dynamic %x {qmin = -128, qmax = 128, floor = 2.5e-04 : f32} : tensor<2x3xf32> as i8
  func.return
}

// -----

func.func @f(%l: tensor<2xf32>) {
  // expected-error@+1 {{divisor and floor must be positive}}
  %a = quant.choose_scale %l, %l {divisor = 255.0 : f32, floor = 0.0 : f32} : tensor<2xf32>
  func.return
}

// -----

func.func @f(%l: tensor<2xf32>) {
  // expected-error@+1 {{qmin must be below qmax}}
  %a = quant.choose_zero_point %l, %l, %l {qmin = 3, qmax = 3} : tensor<2xf32> -> tensor<2xi32>
  func.return
}

// -----

func.func @f(%l: tensor<2xf32>) {
  // expected-error@+1 {{zero points have type tensor<2xi64>, inferred is tensor<2xi32>}}
  %a = quant.choose_zero_point %l, %l, %l {qmin = 0, qmax = 3} : tensor<2xf32> -> tensor<2xi64>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<2x1xf32>, %z: tensor<2x1xi64>) {
  // expected-error@+1 {{the zero point must be i32 or f32, is i64}}
  %a = quant.quantize_dynamic %x, %s, %z {qmin = -128, qmax = 127} : (tensor<2x3xf32>, tensor<2x1xf32>, tensor<2x1xi64>) -> tensor<2x3xi8>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<2x1xf32>, %z: tensor<2x1xi32>) {
  // expected-error@+1 {{shapes differ: [2, 3] and [3, 2]}}
  %a = quant.quantize_dynamic %x, %s, %z {qmin = -128, qmax = 127} : (tensor<2x3xf32>, tensor<2x1xf32>, tensor<2x1xi32>) -> tensor<3x2xi8>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<2xf32>, %z: tensor<i32>) {
  // expected-error@+1 {{a scale of shape [2] does not broadcast over [2, 3]}}
  %a = quant.quantize_dynamic %x, %s, %z {qmin = -128, qmax = 127} : (tensor<2x3xf32>, tensor<2xf32>, tensor<i32>) -> tensor<2x3xi8>
  func.return
}

// -----

func.func @f(%q: tensor<2x3xi64>, %s: tensor<2x1xf32>, %z: tensor<2x1xi32>) {
  // expected-error@+1 {{codes are held as i64, not in 8, 16 or 32 bits}}
  %a = quant.dequantize_dynamic %q, %s, %z : (tensor<2x3xi64>, tensor<2x1xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  func.return
}
