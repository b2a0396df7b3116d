// RUN: qcomp-opt %s --split-input-file --verify-diagnostics

// Symbolic sizes are equal when they are equal for all values.
func.func @f(%x: tensor<?x4xf32, #nn.dims<[b, 4]>>, %y: tensor<?x4xf32, #nn.dims<[s, 4]>>) {
  // expected-error@+1 {{shapes [b, 4] and [s, 4] do not broadcast}}
  %z = nn.add %x, %y : (tensor<?x4xf32, #nn.dims<[b, 4]>>, tensor<?x4xf32, #nn.dims<[s, 4]>>) -> tensor<?x4xf32, #nn.dims<[b, 4]>>
  func.return
}

// -----

func.func @f(%x: tensor<?x4xf32, #nn.dims<[b, 4]>>) {
  // expected-error@+1 {{result has shape [2 * b, 4], inferred is [b, 4]}}
  %z = nn.relu %x : tensor<?x4xf32, #nn.dims<[b, 4]>> -> tensor<?x4xf32, #nn.dims<[2 * b, 4]>>
  func.return
}

// -----

func.func @f(%x: tensor<?x4xf32, #nn.dims<[b, 4]>>) {
  // expected-error@+1 {{cannot reshape 4 * b elements to [2 * b, 3]}}
  %z = nn.reshape %x : tensor<?x4xf32, #nn.dims<[b, 4]>> -> tensor<?x3xf32, #nn.dims<[2 * b, 3]>>
  func.return
}

// -----

// A symbol is no 1, whatever it may be.
func.func @f(%x: tensor<?x4xf32, #nn.dims<[b, 4]>>) {
  // expected-error@+1 {{shapes [b, 4] and [3, 4] do not broadcast}}
  %z = nn.expand %x : tensor<?x4xf32, #nn.dims<[b, 4]>> -> tensor<3x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<?x4xf32, #nn.dims<[s, 4]>>) {
  // expected-error@+1 {{slice s + 1:s + 2 of size s}}
  %z = nn.slice %x {dim = 0 : i64, start = #nn.dim<s + 1>, end = #nn.dim<s + 2>, step = 1 : i64} : tensor<?x4xf32, #nn.dims<[s, 4]>> -> tensor<1x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<?x4xf32, #nn.dims<[b, 5]>>) {
  // expected-error@+1 {{dimensions [?, 4] and #nn.dims<[b, 5]> differ}}
  %z = nn.relu %x : tensor<?x4xf32, #nn.dims<[b, 5]>> -> tensor<?x4xf32, #nn.dims<[b, 5]>>
  func.return
}

// -----

// expected-error@+1 {{symbol b has the range 5 to 3}}
func.func @f() attributes {nn.symbols = [#nn.symbol<b, 5, 3>]} {
  func.return
}

// -----

// expected-error@+1 {{a size nests deeper than 64}}
func.func @f(%x: tensor<?xf32, #nn.dims<[((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((b))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))]>>) {
  func.return
}

// -----

// expected-error@+1 {{7 is divided by 0}}
func.func @f(%x: tensor<?xf32, #nn.dims<[b + 7 floordiv 0]>>) {
  func.return
}

// -----

// expected-error@+1 {{a size of more than 256 terms}}
func.func @f(%x: tensor<?xf32, #nn.dims<[(a + b + c + d + e + 1) * (a + b + c + d + e + 1) * (a + b + c + d + e + 1) * (a + b + c + d + e + 1) * (a + b + c + d + e + 1) * (a + b + c + d + e + 1)]>>) {
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{counts in i32 or i64}}
  %a = nn.arange {start = 0 : i64, step = 2 : i64} : tensor<?xf32, #nn.dims<[b]>>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{the result must have rank 1}}
  %a = nn.arange {start = 0 : i64, step = 2 : i64} : tensor<3x?xi64, #nn.dims<[3, b]>>
  func.return
}

// -----

func.func @f(%x: tensor<1x2x?x4xf32, #nn.dims<[1, 2, s, 4]>>) {
  // expected-error@+1 {{result has shape [1, 2, s, 2], inferred is [1, 2, ((s + 1) floordiv 2), 2]}}
  %p = nn.max_pool2d %x {kernel_size = array<i64: 2, 2>, stride = array<i64: 2, 2>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, ceil_mode = true} : tensor<1x2x?x4xf32, #nn.dims<[1, 2, s, 4]>> -> tensor<1x2x?x2xf32, #nn.dims<[1, 2, s, 2]>>
  func.return
}

// -----

// expected-error@+1 {{symbol b has a bound beyond 64 bits}}
func.func @f(%x: tensor<?x3xf32, #nn.dims<[b, 3]>>) attributes {nn.symbols = [#nn.symbol<b, 0, 9223372036854775808>]} {
  func.return
}

// -----

// expected-error@+1 {{a size has a number beyond 64 bits}}
func.func @f(%x: tensor<?x3xf32, #nn.dims<[3 * max(b, 9223372036854775808 * c), 3]>>) {
  func.return
}

// -----

// expected-error@+1 {{a guard compares by eq, ne, ge, gt, le, lt}}
func.func @f() attributes {nn.guards = [#nn.guard<b 4>]} {
  func.return
}

// -----

// expected-error@+1 {{a size has a number beyond 64 bits}}
func.func @f() attributes {nn.guards = [#nn.guard<b ge 9223372036854775808>]} {
  func.return
}
