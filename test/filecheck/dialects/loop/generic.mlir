// RUN: qcomp-opt %s --print-op-generic | filecheck %s
// RUN: qcomp-opt %s --print-op-generic | qcomp-opt --print-op-generic | filecheck %s

// CHECK-LABEL: "func.func"() <{sym_name = "f"
func.func @f(%m: memref<4x8xi8>, %n: index) {
  // CHECK:      "loop.for"(%n) <{lower = affine_map<() -> (0)>, upper = affine_map<()[s0] -> (s0, 4)>, step = 1 : i64,
  // CHECK-SAME: kind = "parallel", operandSegmentSizes = array<i32: 0, 1, 0>}> ({
  // CHECK-NEXT: ^{{.*}}(%i: index):
  loop.for %i = [0] to [%n, 4] parallel {
    // CHECK-NEXT: [[T:%.*]] = "loop.load"(%m, %i) <{map = affine_map<()[s0] -> (s0, 1)>, over = array<i64: 1>,
    // CHECK-SAME: steps = array<i64: 2>, valid = 2 : i64}> : (memref<4x8xi8>, index) -> vector<3xi8>
    %t = loop.load %m[%i, 1] over (1 step 2) valid 2 : memref<4x8xi8>, vector<3xi8>
    // CHECK-NEXT: "loop.store"([[T]], %m, %i) <{map = affine_map<()[s0] -> (s0, 0)>, over = array<i64: 1>, steps
    loop.store %t, %m[%i, 0] over (1) : memref<4x8xi8>, vector<3xi8>
    // CHECK-NEXT: "loop.yield"() : () -> ()
  // CHECK-NEXT: }) : (index) -> ()
  }
  func.return
}
