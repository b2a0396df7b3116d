// RUN: qcomp-opt %s | filecheck %s
// RUN: qcomp-opt %s | qcomp-opt | filecheck %s
// RUN: qcomp-opt %s --print-op-generic | qcomp-opt | filecheck %s

// CHECK-LABEL: func.func @exact(
// CHECK-NEXT:    %s = loop.angle "rest", %a : f32
// CHECK-NEXT:    %q = loop.angle "quadrant", %v : vector<16xf32>
// CHECK-NEXT:    %r = loop.remainder %d, %d : f64
// CHECK-NEXT:    %x = loop.maximum %d, %d : f64
// CHECK-NEXT:    %c = loop.compare "lt", %d, %d : f64 -> i1
// CHECK-NEXT:    %t = loop.truncate %d : f64 -> i32
// CHECK-NEXT:    %f = loop.to_float %m : i64 -> f64
func.func @exact(%a: f32, %d: f64, %v: vector<16xf32>, %m: i64) {
  %s = loop.angle "rest", %a : f32
  %q = loop.angle "quadrant", %v : vector<16xf32>
  %r = loop.remainder %d, %d : f64
  %x = loop.maximum %d, %d : f64
  %c = loop.compare "lt", %d, %d : f64 -> i1
  %t = loop.truncate %d : f64 -> i32
  %f = loop.to_float %m : i64 -> f64
  func.return
}
