// RUN: qcomp-opt %s -p cse | filecheck %s
// RUN: %qcomp-opt %s -p cse,dce -o %t.mlir && qcomp-opt %t.mlir > %t.again && cmp %t.mlir %t.again
// RUN: not qcomp-opt %s -p nosuch 2>&1 \
// RUN:   | filecheck %s --check-prefix=ERROR
// RUN: qcomp-opt < %s -p cse | filecheck %s

// ERROR: error: unknown pass 'nosuch'

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    [[SUM:%.*]] = arith.addf
// CHECK-NEXT:    arith.mulf [[SUM]], [[SUM]]
func.func @main(%a: f32, %b: f32) -> f32 {
  %0 = arith.addf %a, %b : f32
  %1 = arith.addf %a, %b : f32
  %2 = arith.mulf %0, %1 : f32
  func.return %2 : f32
}
