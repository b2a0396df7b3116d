// RUN: qcomp-opt %s | filecheck %s
// RUN: qcomp-opt %s | qcomp-opt | filecheck %s
// RUN: qcomp-opt %s --print-op-generic | qcomp-opt | filecheck %s
// RUN: qcomp-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: func.func @tiles(
// CHECK-NEXT:    %c = loop.compare "lt", %a, %b : vector<3x16xf32> -> vector<3x16xi1>
// CHECK-NEXT:    %d = loop.compare "ne", %n, %n {note = "kept"} : vector<3x16xi32> -> vector<3x16xi1>
// CHECK-NEXT:    %s = loop.select %c, %a, %b : vector<3x16xi1>, vector<3x16xf32>
// CHECK-NEXT:    %t = loop.select %d, %n, %n : vector<3x16xi1>, vector<3x16xi32>
// CHECK-NEXT:    %x = loop.maximum %a, %b : vector<3x16xf32>
// CHECK-NEXT:    %y = loop.minimum %a, %b : vector<3x16xf32>
// CHECK-NEXT:    %z = loop.scale %a, %b : vector<3x16xf32>
// CHECK-NEXT:    %w = loop.truncate %a : vector<3x16xf32> -> vector<3x16xi32>
// GENERIC:       "loop.compare"(%a, %b) <{predicate = "lt"}> : (vector<3x16xf32>, vector<3x16xf32>) -> vector<3x16xi1>
func.func @tiles(%a: vector<3x16xf32>, %b: vector<3x16xf32>, %n: vector<3x16xi32>) {
  %c = loop.compare "lt", %a, %b : vector<3x16xf32> -> vector<3x16xi1>
  %d = loop.compare "ne", %n, %n {note = "kept"} : vector<3x16xi32> -> vector<3x16xi1>
  %s = loop.select %c, %a, %b : vector<3x16xi1>, vector<3x16xf32>
  %t = loop.select %d, %n, %n : vector<3x16xi1>, vector<3x16xi32>
  %x = loop.maximum %a, %b : vector<3x16xf32>
  %y = loop.minimum %a, %b : vector<3x16xf32>
  %z = loop.scale %a, %b : vector<3x16xf32>
  %w = loop.truncate %a : vector<3x16xf32> -> vector<3x16xi32>
  func.return
}

// CHECK-LABEL: func.func @scalars(
// CHECK-NEXT:    %c = loop.compare "ge", %m, %m : i64 -> i1
// CHECK-NEXT:    %s = loop.select %c, %a, %a : i1, f32
// CHECK-NEXT:    %w = loop.truncate %a : f32 -> i64
// CHECK-NEXT:    %f = loop.to_float %m : i64 -> f32
// CHECK-NEXT:    %r = loop.reduce "add", %v : vector<16xf32> -> f32
// CHECK-NEXT:    %q = loop.reduce "max", %v : vector<16xf32> -> f32
// CHECK-NEXT:    %u = loop.reduce "add", %n : vector<4xi32> -> i32
// CHECK-NEXT:    %g = loop.fill %v {first = 5 : i64, value = 0xff800000 : f32} : vector<16xf32>
// CHECK-NEXT:    %h = loop.fill %n {first = 3 : i64, value = -7 : i32} : vector<4xi32>
// GENERIC:       "loop.reduce"(%v) <{kind = "add"}> : (vector<16xf32>) -> f32
func.func @scalars(%a: f32, %m: i64, %v: vector<16xf32>, %n: vector<4xi32>) {
  %c = loop.compare "ge", %m, %m : i64 -> i1
  %s = loop.select %c, %a, %a : i1, f32
  %w = loop.truncate %a : f32 -> i64
  %f = loop.to_float %m : i64 -> f32
  %r = loop.reduce "add", %v : vector<16xf32> -> f32
  %q = loop.reduce "max", %v : vector<16xf32> -> f32
  %u = loop.reduce "add", %n : vector<4xi32> -> i32
  %g = loop.fill %v {first = 5 : i64, value = 0xFF800000 : f32} : vector<16xf32>
  %h = loop.fill %n {first = 3 : i64, value = -7 : i32} : vector<4xi32>
  func.return
}
