// RUN: qcomp-opt %s --split-input-file --verify-diagnostics

func.func @f(%m: memref<4x6xf32>, %f: i8, %i: index) {
  // expected-error@+1 {{a part has the buffer's dimensions but the first}}
  %r = loop.part %m[%i] : memref<4x6xf32> to memref<4xf32>
  func.return
}

// -----

func.func @f(%m: memref<4x6xf32>, %f: i8, %i: index) {
  // expected-error@+1 {{a region ends with loop.yield}}
  "loop.while"() ({ loop.yield %f : i8 }, { "nn.yield"() : () -> () }) : () -> ()
  func.return
}

// -----

func.func @f(%m: memref<4x6xf32>, %f: i8, %i: index) {
  // expected-error@+1 {{a branch ends with loop.yield of nothing}}
  loop.if %f : i8 { loop.yield %f : i8 } else { loop.yield }
  func.return
}

// -----

func.func @f(%m: memref<4x6xf32>, %f: i8, %i: index) {
  // expected-error@+1 {{the test yields an i8}}
  loop.while { loop.yield %i : index } do { loop.yield }
  func.return
}

// -----

func.func @f(%m: memref<4x6xf32>, %f: i8, %i: index) {
  // expected-error@+1 {{the body yields nothing}}
  loop.while { loop.yield %f : i8 } do { loop.yield %f : i8 }
  func.return
}
