// RUN: qcomp-opt %s | filecheck %s
// RUN: qcomp-opt %s | qcomp-opt | filecheck %s
// RUN: qcomp-opt %s --print-op-generic | qcomp-opt | filecheck %s

// CHECK-LABEL: func.func @halves(
// CHECK-NEXT:    %w = loop.widen_half %p as f16 : i16 -> f32
// CHECK-NEXT:    %v = loop.widen_half %t as bf16 : vector<3x16xi16> -> vector<3x16xf32>
// CHECK-NEXT:    %n = loop.narrow_half %w as bf16 : f32 -> i16
// CHECK-NEXT:    %m = loop.narrow_half %v as f16 : vector<3x16xf32> -> vector<3x16xi16>
func.func @halves(%p: i16, %t: vector<3x16xi16>) {
  %w = loop.widen_half %p as f16 : i16 -> f32
  %v = loop.widen_half %t as bf16 : vector<3x16xi16> -> vector<3x16xf32>
  %n = loop.narrow_half %w as bf16 : f32 -> i16
  %m = loop.narrow_half %v as f16 : vector<3x16xf32> -> vector<3x16xi16>
  func.return
}
