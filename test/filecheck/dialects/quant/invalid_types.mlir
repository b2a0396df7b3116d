// RUN: qcomp-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{storage type must be i2 to i32 or u2 to u32, got f8}}
func.func private @f(tensor<2x3x!quant.uniform<f8:f32, 0.5>>)

// -----

// expected-error@+1 {{storage type must be i2 to i32 or u2 to u32, got i1}}
func.func private @f(tensor<2x3x!quant.uniform<i1:f32, 0.5>>)

// -----

// expected-error@+1 {{storage type must be i2 to i32 or u2 to u32, got u33}}
func.func private @f(tensor<2x3x!quant.uniform<u33:f32, 0.5>>)

// -----

// expected-error@+1 {{expressed type must be a float type, got i32}}
func.func private @f(tensor<2x3x!quant.uniform<i8:i32, 0.5>>)

// -----

// expected-error@+1 {{storage range <-129:127> does not fit -128 to 127}}
func.func private @f(tensor<2x3x!quant.uniform<i8<-129:127>:f32, 0.5>>)

// -----

// expected-error@+1 {{storage range <5:5> does not fit 0 to 255}}
func.func private @f(tensor<2x3x!quant.uniform<u8<5:5>:f32, 0.5>>)

// -----

// expected-error@+1 {{scale must be positive and finite}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32, 0.0>>)

// -----

// expected-error@+1 {{scale must be positive and finite}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32:1, {0.5, -0.25, 1.0}>>)

// -----

// expected-error@+1 {{scale must be positive and finite}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32:1, #nn.data<dense<[0.5, 0x7FF0000000000000, 1.0]> : tensor<3xf64>>>>)

// -----

// expected-error@+1 {{scale must be positive and finite}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32:1, #nn.data<dense<[0.5, 0x7FF8000000000000, 1.0]> : tensor<3xf64>>>>)

// -----

// expected-error@+1 {{zero point 128 is outside the storage range <-128:127>}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32, 0.5:128>>)

// -----

// expected-error@+1 {{zero point -1 is outside the storage range <0:255>}}
func.func private @f(tensor<2x3x!quant.uniform<u8:f32:1, {0.5:3, 0.25:-1, 1.0}>>)

// -----

// expected-error@+1 {{zero point -128 is outside the storage range <-127:127>}}
func.func private @f(tensor<2x3x!quant.uniform<i8<-127:127>:f32, 0.5:-128>>)

// -----

// expected-error@+1 {{a quantized type needs a scale}}
func.func private @f(tensor<2x0x!quant.uniform<i8:f32:1, #nn.data<dense<[]> : tensor<0xf64>>>>)

// -----

// expected-error@+1 {{a type without axis or blocks has one scale, not a list}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32, {0.5, 0.25}>>)

// -----

// expected-error@+1 {{a per-axis type needs an axis >= 0 and a list of scales}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32:1, 0.5>>)

// -----

// expected-error@+1 {{a per-axis type needs an axis >= 0 and a list of scales}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32:0, {{0.5}, {0.25}}>>)

// -----

// expected-error@+1 {{block sizes must be at least 1}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32:{0:1, 1:0}, {{0.5}, {0.25}}>>)

// -----

// expected-error@+1 {{two block sizes for one axis}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32:{1:1, 1:3}, {{0.5}, {0.25}}>>)

// -----

// expected-error@+1 {{quantization parameters are numbers or #nn.data}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32:1, [0.5, 0.25, 1.0]>>)

// -----

// expected-error@+1 {{scales are floats, zero points are integers}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32:1, #nn.data<dense<[1, 2, 3]> : tensor<3xi32>>>>)

// -----

// expected-error@+1 {{scales are floats, zero points are integers}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32:1, #nn.data<dense<[1.0, 2.0, 3.0]> : tensor<3xbf16>>>>)

// -----

// expected-error@+1 {{scales are floats, zero points are integers}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32:1, #nn.data<dense<1.0> : tensor<3xf64>>:#nn.data<dense<1.5> : tensor<3xf64>>>>)

// -----

// expected-error@+1 {{[3] scales and [2] zero points}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32:1, #nn.data<dense<1.0> : tensor<3xf64>>:#nn.data<dense<1> : tensor<2xi64>>>>)

// -----

// expected-error@+1 {{ragged list of quantization parameters}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32:{0:1, 1:1}, {{0.5, 0.25}, {1.0}}>>)

// -----

// expected-error@+1 {{quantization parameters nest deeper than 64}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32:{0:1}, {{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{0.5}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}>>)

// -----

// expected-error@+1 {{a scale expected}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32:1, {}>>)

// -----

// A scale is used in float32.
// expected-error@+1 {{scale 1e+39 is no float32: it must lie between 1.401298464324817e-45 and 3.4028234663852886e+38}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32, 1.0e39>>)

// -----

// expected-error@+1 {{scale 1e-320 is no float32: it must lie between 1.401298464324817e-45 and 3.4028234663852886e+38}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32:1, {0.5, 1.0e-320, 0.25}>>)

// -----

// expected-error@+1 {{scale 7e-46 is no float32: it must lie between 1.401298464324817e-45 and 3.4028234663852886e+38}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f64, 7.0e-46>>)

// -----

// Bits of a float32: as those of a float64 they are a denormal.
// expected-error@+1 {{scale 5.263544247e-315 is no float32}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32, 0x3F800000>>)

// -----

// expected-error@+1 {{-0x3FE0000000000000 is no scale: hexadecimal digits are the bits of a float64}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32, -0x3FE0000000000000>>)

// -----

// expected-error@+1 {{an integer too large for 64 bits}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32, 0.5:99999999999999999999>>)

// -----

// expected-error@+1 {{a zero point is beyond 64 bits: it must be a code of the storage type}}
func.func private @f(tensor<2x3x!quant.uniform<i8:f32:1, {0.5:1, 0.25:18446744073709551615, 1.0}>>)

// -----

// expected-error@+1 {{a zero point is beyond 63 bits: it must be a code of the storage type}}
func.func private @f(tensor<2x2x!quant.uniform<i8:f32:1, #nn.data<dense<[0.5, 0.25]> : tensor<2xf64>>:#nn.data<dense<[1, 18446744073709551615]> : tensor<2xui64>>>>)
