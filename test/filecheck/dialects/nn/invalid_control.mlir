// RUN: qcomp-opt %s --split-input-file --verify-diagnostics

func.func @f(%p: tensor<i1>, %q: tensor<2xi1>, %x: tensor<2xf32>, %i: tensor<i64>, %xs: tensor<5x3xf32>, %zs: tensor<4x3xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{a condition is one i1}}
  %y = nn.cond %q : (tensor<2xi1>) -> tensor<2xf32> { nn.yield %x : tensor<2xf32> } else { nn.yield %x : tensor<2xf32> }
  func.return
}

// -----

func.func @f(%p: tensor<i1>, %q: tensor<2xi1>, %x: tensor<2xf32>, %i: tensor<i64>, %xs: tensor<5x3xf32>, %zs: tensor<4x3xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{cond needs a result}}
  "nn.cond"(%p) ({ "nn.yield"() : () -> () }, { "nn.yield"() : () -> () }) : (tensor<i1>) -> ()
  func.return
}

// -----

func.func @f(%p: tensor<i1>, %q: tensor<2xi1>, %x: tensor<2xf32>, %i: tensor<i64>, %xs: tensor<5x3xf32>, %zs: tensor<4x3xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{branches take no arguments}}
  %y = "nn.cond"(%p) ({ ^bb0(%a: tensor<2xf32>): nn.yield %x : tensor<2xf32> }, { nn.yield %x : tensor<2xf32> }) : (tensor<i1>) -> tensor<2xf32>
  func.return
}

// -----

func.func @f(%p: tensor<i1>, %q: tensor<2xi1>, %x: tensor<2xf32>, %i: tensor<i64>, %xs: tensor<5x3xf32>, %zs: tensor<4x3xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{a branch has other types}}
  %y = nn.cond %p : (tensor<i1>) -> tensor<2xf32> { nn.yield %x : tensor<2xf32> } else { nn.yield %i : tensor<i64> }
  func.return
}

// -----

func.func @f(%p: tensor<i1>, %q: tensor<2xi1>, %x: tensor<2xf32>, %i: tensor<i64>, %xs: tensor<5x3xf32>, %zs: tensor<4x3xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{a region ends with nn.yield}}
  %y = "nn.cond"(%p) ({ loop.yield }, { nn.yield %x : tensor<2xf32> }) : (tensor<i1>) -> tensor<2xf32>
  func.return
}

// -----

func.func @f(%p: tensor<i1>, %q: tensor<2xi1>, %x: tensor<2xf32>, %i: tensor<i64>, %xs: tensor<5x3xf32>, %zs: tensor<4x3xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{while carries a value}}
  "nn.while"() ({ nn.yield %p : tensor<i1> }, { "nn.yield"() : () -> () }) : () -> ()
  func.return
}

// -----

func.func @f(%p: tensor<i1>, %q: tensor<2xi1>, %x: tensor<2xf32>, %i: tensor<i64>, %xs: tensor<5x3xf32>, %zs: tensor<4x3xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{results are the carried values}}
  %y = nn.while(%x) : (tensor<2xf32>) -> tensor<i64> {
  ^bb0(%a: tensor<2xf32>):
  nn.yield %p : tensor<i1>
  } do {
  ^bb0(%b: tensor<2xf32>):
  nn.yield %x : tensor<2xf32>
  }
  func.return
}

// -----

func.func @f(%p: tensor<i1>, %q: tensor<2xi1>, %x: tensor<2xf32>, %i: tensor<i64>, %xs: tensor<5x3xf32>, %zs: tensor<4x3xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{a region's argument list has other types}}
  %y = nn.while(%x) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%a: tensor<2xf32>):
  nn.yield %p : tensor<i1>
  } do {
  ^bb0(%b: tensor<i64>):
  nn.yield %x : tensor<2xf32>
  }
  func.return
}

// -----

func.func @f(%p: tensor<i1>, %q: tensor<2xi1>, %x: tensor<2xf32>, %i: tensor<i64>, %xs: tensor<5x3xf32>, %zs: tensor<4x3xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{the test yields one value}}
  %y = nn.while(%x) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%a: tensor<2xf32>):
  nn.yield %p, %p : tensor<i1>, tensor<i1>
  } do {
  ^bb0(%b: tensor<2xf32>):
  nn.yield %x : tensor<2xf32>
  }
  func.return
}

// -----

func.func @f(%p: tensor<i1>, %q: tensor<2xi1>, %x: tensor<2xf32>, %i: tensor<i64>, %xs: tensor<5x3xf32>, %zs: tensor<4x3xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{the body has other types}}
  %y = nn.while(%x) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%a: tensor<2xf32>):
  nn.yield %p : tensor<i1>
  } do {
  ^bb0(%b: tensor<2xf32>):
  nn.yield %i : tensor<i64>
  }
  func.return
}

// -----

func.func @f(%p: tensor<i1>, %q: tensor<2xi1>, %x: tensor<2xf32>, %i: tensor<i64>, %xs: tensor<5x3xf32>, %zs: tensor<4x3xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{iterate needs an input and a result}}
  %y = "nn.iterate"(%x) <{operandSegmentSizes = array<i32: 1, 0>}> ({ ^bb0(%a: tensor<2xf32>): nn.yield %x : tensor<2xf32> }) : (tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @f(%p: tensor<i1>, %q: tensor<2xi1>, %x: tensor<2xf32>, %i: tensor<i64>, %xs: tensor<5x3xf32>, %zs: tensor<4x3xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{inputs need the same dimension 0}}
  %y = nn.iterate() over %xs, %zs : tensor<5x3xf32>, tensor<4x3xf32> -> tensor<5x3xf32> {
  ^bb0(%a: tensor<3xf32>, %b: tensor<3xf32>):
  nn.yield %a : tensor<3xf32>
  }
  func.return
}

// -----

func.func @f(%p: tensor<i1>, %q: tensor<2xi1>, %x: tensor<2xf32>, %i: tensor<i64>, %xs: tensor<5x3xf32>, %zs: tensor<4x3xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{the region's argument list has other types}}
  %y = nn.iterate() over %xs : tensor<5x3xf32> -> tensor<5x3xf32> {
  ^bb0(%a: tensor<2xf32>):
  nn.yield %a : tensor<2xf32>
  }
  func.return
}

// -----

func.func @f(%p: tensor<i1>, %q: tensor<2xi1>, %x: tensor<2xf32>, %i: tensor<i64>, %xs: tensor<5x3xf32>, %zs: tensor<4x3xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{the body has other types}}
  %y = nn.iterate() over %xs : tensor<5x3xf32> -> tensor<5x4xf32> {
  ^bb0(%a: tensor<3xf32>):
  nn.yield %a : tensor<3xf32>
  }
  func.return
}

// -----

func.func @f(%p: tensor<i1>, %q: tensor<2xi1>, %x: tensor<2xf32>, %i: tensor<i64>, %xs: tensor<5x3xf32>, %zs: tensor<4x3xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{results begin with the carried values}}
  %y, %z = nn.iterate(%x : tensor<2xf32>) over %xs : tensor<5x3xf32> -> tensor<i64>, tensor<5x3xf32> {
  ^bb0(%c: tensor<2xf32>, %a: tensor<3xf32>):
  nn.yield %c, %a : tensor<2xf32>, tensor<3xf32>
  }
  func.return
}
