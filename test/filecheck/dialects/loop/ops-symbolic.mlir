// RUN: qcomp-opt %s | filecheck %s
// RUN: qcomp-opt %s | qcomp-opt | filecheck %s
// RUN: qcomp-opt %s --print-op-generic | qcomp-opt | filecheck %s

// CHECK-LABEL: func.func @sizes(%m: memref<?x5xf32, #nn.dims<[s, 5]>>, %a: memref<?xi8, #nn.dims<[20 * s + 64]>>)
// CHECK-SAME:  attributes {nn.symbols = [#nn.symbol<s, 0>]}
func.func @sizes(%m: memref<?x5xf32, #nn.dims<[s, 5]>>, %a: memref<?xi8, #nn.dims<[20 * s + 64]>>) attributes {nn.symbols = [#nn.symbol<s, 0>]} {
  // CHECK-NEXT: %n = loop.size {value = #nn.dim<16 * ((5 * s) floordiv 16)>} : index
  %n = loop.size {value = #nn.dim<5 * s floordiv 16 * 16>} : index
  // CHECK-NEXT: %v = loop.view %a {offset = #nn.dim<4 * s>} : memref<?xi8, #nn.dims<[20 * s + 64]>> to memref<?xf32, #nn.dims<[s]>>
  %v = loop.view %a {offset = #nn.dim<4 * s>} : memref<?xi8, #nn.dims<[20 * s + 64]>> to memref<?xf32, #nn.dims<[s]>>
  // CHECK-NEXT: %t = loop.load %v[%n] over (0) valid #nn.dim<s - 16 * (s floordiv 16)> : memref<?xf32, #nn.dims<[s]>>, vector<16xf32>
  %t = loop.load %v[%n] over (0) valid #nn.dim<s mod 16> : memref<?xf32, #nn.dims<[s]>>, vector<16xf32>
  // CHECK-NEXT: %f = loop.fill %t {first = #nn.dim<s - 16 * (s floordiv 16)>, value = 0.000000e+00 : f32} : vector<16xf32>
  %f = loop.fill %t {first = #nn.dim<s mod 16>, value = 0.0 : f32} : vector<16xf32>
  // CHECK-NEXT: loop.store %f, %v[%n] over (0) valid #nn.dim<s - 16 * (s floordiv 16)>
  loop.store %f, %v[%n] over (0) valid #nn.dim<s mod 16> : memref<?xf32, #nn.dims<[s]>>, vector<16xf32>
  func.return
}
