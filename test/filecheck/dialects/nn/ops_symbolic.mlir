// RUN: qcomp-opt %s | filecheck %s
// RUN: qcomp-opt %s | qcomp-opt | filecheck %s
// RUN: qcomp-opt %s --print-op-generic | qcomp-opt | filecheck %s

// Sizes have a normal form: equal ones print alike.
// CHECK-LABEL: func.func @main(%x: tensor<?x?x128xf32, #nn.dims<[b, 2 * s + 1, 128]>>, %n: {{.*}}, %y: tensor<?x?x?xf32, #nn.dims<[b * s + 2 * s, ?, (s floordiv 3)]>>)
// CHECK-SAME:    {nn.symbols = [#nn.symbol<b, 0, 64>, #nn.symbol<s, 1>]}
func.func @main(%x: tensor<?x?x128xf32, #nn.dims<[b, s + s + 4 - 3, 128]>>, %n: tensor<?x?x?x?xi32, #nn.dims<[b ceildiv 4, b mod 4, max(s, b), min(b, 2)]>>, %y: tensor<?x?x?xf32, #nn.dims<[(b + 2) * s, ?, (2 * s) floordiv 6]>>) attributes {nn.symbols = [#nn.symbol<b, 0, 64>, #nn.symbol<s, 1>]} {
  // CHECK-NEXT: %v = nn.dim_value {value = #nn.dim<b * s>} : tensor<i64>
  %v = nn.dim_value {value = #nn.dim<s * b>} : tensor<i64>
  // CHECK-NEXT: %w = nn.dim_value {value = 7 : i64} : tensor<i64>
  %w = nn.dim_value {value = 7 : i64} : tensor<i64>
  // CHECK-NEXT: %a = nn.arange {start = #nn.dim<s - 1>, step = 2 : i64} : tensor<?xi64, #nn.dims<[b]>>
  %a = nn.arange {start = #nn.dim<-1 + s>, step = 2 : i64} : tensor<?xi64, #nn.dims<[b]>>
  // CHECK-NEXT: nn.slice %x {dim = 1 : i64, start = #nn.dim<2 * s>, end = #nn.dim<2 * s + 1>, step = 1 : i64} : {{.*}} -> tensor<?x1x128xf32, #nn.dims<[b, 1, 128]>>
  %l = nn.slice %x {dim = 1 : i64, start = #nn.dim<2 * s>, end = #nn.dim<2 * s + 1>, step = 1 : i64} : tensor<?x?x128xf32, #nn.dims<[b, 2 * s + 1, 128]>> -> tensor<?x1x128xf32, #nn.dims<[b, 1, 128]>>
  // Functions of two sizes: ceildiv and mod become floordiv.
  // CHECK-NEXT: nn.relu %n : tensor<?x?x?x?xi32, #nn.dims<[((b + 3) floordiv 4), b - 4 * (b floordiv 4), max(b, s), min(2, b)]>>
  %m = nn.relu %n : tensor<?x?x?x?xi32, #nn.dims<[b ceildiv 4, b mod 4, max(s, b), min(b, 2)]>> -> tensor<?x?x?x?xi32, #nn.dims<[b ceildiv 4, b mod 4, max(s, b), min(b, 2)]>>
  func.return
}

// CHECK-LABEL: func.func @codes
// CHECK-SAME: tensor<?x3x!quant.uniform<i8:f32:1, {0.1, 0.2:5, 0.3}>, #nn.dims<[b, 3]>>
func.func @codes(%q: tensor<?x3x!quant.uniform<i8:f32:1, {0.1, 0.2:5, 0.3}>, #nn.dims<[b, 3]>>) -> tensor<?x3xf32, #nn.dims<[b, 3]>> {
  %x = quant.dequantize %q : tensor<?x3x!quant.uniform<i8:f32:1, {0.1, 0.2:5, 0.3}>, #nn.dims<[b, 3]>> -> tensor<?x3xf32, #nn.dims<[b, 3]>>
  func.return %x : tensor<?x3xf32, #nn.dims<[b, 3]>>
}

// Guards: comparisons without negative terms, mod where it makes them shorter.
// CHECK-LABEL: func.func @guarded
// CHECK-SAME:    nn.guards = [#nn.guard<(s mod 4) eq 1>, #nn.guard<s ge 2 * b + 1, "x.size()[1] > 2 * b at model.py:7">, #nn.guard<max(-b + 2, s - 9) ge 0>, #nn.guard<b ne s>]}
func.func @guarded(%x: tensor<?x?xf32, #nn.dims<[b, s]>>) attributes {nn.symbols = [#nn.symbol<b, 0, 64>, #nn.symbol<s, 1>], nn.guards = [#nn.guard<s mod 4 eq 1>, #nn.guard<2 * b lt s, "x.size()[1] > 2 * b at model.py:7">, #nn.guard<max(2 - b, s - 9) ge 0>, #nn.guard<b ne s>]} {
  func.return
}
