// RUN: qcomp-opt %s --split-input-file --verify-diagnostics

func.func @f() {
  // expected-error@+1 {{a constant needs a tensor type}}
  %c = nn.constant dense<1> : i8
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{a constant needs a tensor type}}
  %c = nn.constant {value = #nn.data<dense<1> : i8>} dense<1> : tensor<i8>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{a constant needs a static shape}}
  %c = nn.constant dense<1> : tensor<?xi8>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{shapes have at most 64 dimensions}}
  %c = nn.constant dense<1> : tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xi8>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{constant of shape [2, 3] cannot have type tensor<3x2xi8>}}
  %c = nn.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<3x2xi8>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{ragged constant}}
  %c = nn.constant dense<[[1, 2, 3], [4, 5]]> : tensor<2x3xi8>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{splat constants of 1000000000000 bytes, more than the 536870912 allowed: keep large ones in a sidecar file}}
  %c = nn.constant dense<0> : tensor<1000000000000xi8>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{200 is not a value of i8 (-128 to 127)}}
  %c = nn.constant dense<200> : tensor<i8>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{-1 is not a value of ui8 (0 to 255)}}
  %c = nn.constant dense<[3, -1]> : tensor<2xui8>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{1.5 is not a value of i32 (-2147483648 to 2147483647)}}
  %c = nn.constant dense<1.5> : tensor<i32>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{2 is not a value of i1 (0 to 1)}}
  %c = nn.constant dense<2> : tensor<i1>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{true is not a value of i8 (-128 to 127)}}
  %c = nn.constant dense<true> : tensor<i8>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{true is not a value of f32}}
  %c = nn.constant dense<true> : tensor<f32>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{1e+60 is beyond the range of f32}}
  %c = nn.constant dense<1.0e60> : tensor<f32>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{70000.0 is beyond the range of f16}}
  %c = nn.constant dense<70000.0> : tensor<f16>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{0x123456789 is no bit pattern of f32}}
  %c = nn.constant dense<0x123456789> : tensor<f32>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{no numpy dtype holds elements of type i65}}
  %c = nn.constant dense<1> : tensor<i65>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{unresolved constant "0123456789abcdef0123456789abcdef": not found in }}
  %c = nn.constant "0123456789abcdef0123456789abcdef" : tensor<100xf32>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{a constant of tensor<2xi8> cannot have type tensor<2xf32>}}
  %c = "nn.constant"() <{value = #nn.data<dense<[1, 2]> : tensor<2xi8>>}> : () -> tensor<2xf32>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{codes outside the storage range <-127:127>}}
  %c = nn.constant dense<[1, -128]> : tensor<2x!quant.uniform<i8<-127:127>:f32, 0.5>>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{2 scales for dimension 0 of size 3}}
  %c = nn.constant dense<1> : tensor<3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  func.return
}

// -----

func.func @f(%x: tensor<1x1xf32>) {
  // expected-error@+1 {{nn.expand: a tensor of 18446744073709551616 elements, more than the 68719476736 a tensor may have (limit MAX_ELEMENTS)}}
  %c = nn.expand %x : tensor<1x1xf32> -> tensor<4294967296x4294967296xf32>
  func.return
}

// -----

// expected-error@+1 {{a tensor of 1099511627776 elements, more than the 68719476736 a tensor may have (limit MAX_ELEMENTS)}}
func.func private @f(tensor<2x0x549755813888xi8>)

// -----

// expected-error@+1 {{a memref of more than 2^100 elements, more than the 68719476736 a tensor may have (limit MAX_ELEMENTS)}}
func.func @f(%x: memref<1267650600228229401496703205376xf32>) {
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{hexadecimal digits are the bits of a float, which have no sign before them}}
  %c = arith.constant -0x3F800000 : f32
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{a number beyond the range of f64}}
  %c = arith.constant 1.0e999 : f64
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{a number beyond the range of its type}}
  %c = arith.constant 0x3F8000000 : f32
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{hexadecimal digits that are not the bits of f32}}
  %c = arith.constant dense<[1.0, 0x3F8000000]> : tensor<2xf32>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{9223372036854775808 is not a value of index}}
  %c = arith.constant 9223372036854775808 : index
  func.return
}
