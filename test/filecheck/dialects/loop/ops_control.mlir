// RUN: qcomp-opt %s | filecheck %s
// RUN: qcomp-opt %s | qcomp-opt | filecheck %s
// RUN: qcomp-opt %s --print-op-generic | qcomp-opt | filecheck %s

// CHECK-LABEL: func.func @control(
// CHECK-NEXT:     %r = loop.part %m[%i] : memref<4x6xf32> to memref<6xf32>
// CHECK-NEXT:     loop.if %f : i8 {
// CHECK-NEXT:       %v = loop.load %m[0, 0] : memref<4x6xf32>, f32
// CHECK-NEXT:       loop.store %v, %r[0] : memref<6xf32>, f32
// CHECK-NEXT:       loop.yield
// CHECK-NEXT:     } else {
// CHECK-NEXT:       loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.while {
// CHECK-NEXT:       %g = loop.load %b[] : memref<i8>, i8
// CHECK-NEXT:       loop.yield %g : i8
// CHECK-NEXT:     } do {
// CHECK-NEXT:       loop.yield
// CHECK-NEXT:     }
func.func @control(%m: memref<4x6xf32>, %b: memref<i8>, %f: i8, %i: index) {
  %r = loop.part %m[%i] : memref<4x6xf32> to memref<6xf32>
  loop.if %f : i8 {
    %v = loop.load %m[0, 0] : memref<4x6xf32>, f32
    loop.store %v, %r[0] : memref<6xf32>, f32
    loop.yield
  } else {
    loop.yield
  }
  loop.while {
    %g = loop.load %b[] : memref<i8>, i8
    loop.yield %g : i8
  } do {
    loop.yield
  }
  func.return
}
