// RUN: qcomp-opt %s --split-input-file --verify-diagnostics

func.func @predicate(%a: f32) {
  // expected-error@+1 {{the predicate must be one of eq, ne, lt, le, gt, ge}}
  %c = loop.compare "ult", %a, %a : f32 -> i1
  func.return
}

// -----

func.func @compared_type(%a: i8) {
  // expected-error@+1 {{compares f32, f64, i32 or i64}}
  %c = loop.compare "lt", %a, %a : i8 -> i1
  func.return
}

// -----

func.func @compared_shape(%a: vector<4xf32>) {
  // expected-error@+1 {{the result must be i1 in the operands' shape}}
  %c = loop.compare "lt", %a, %a : vector<4xf32> -> vector<5xi1>
  func.return
}

// -----

func.func @condition(%c: i1, %a: vector<4xf32>) {
  // expected-error@+1 {{the condition must be i1 in the shape}}
  %s = loop.select %c, %a, %a : i1, vector<4xf32>
  func.return
}

// -----

func.func @extreme(%a: i32) {
  // expected-error@+1 {{takes f32 or f64}}
  %s = loop.maximum %a, %a : i32
  func.return
}

// -----

func.func @scaled(%a: i32) {
  // expected-error@+1 {{scales f32 or f64}}
  %s = loop.scale %a, %a : i32
  func.return
}

// -----

func.func @truncated(%a: f32) {
  // expected-error@+1 {{turns f32 or f64 into i32 or i64}}
  %s = loop.truncate %a : f32 -> i8
  func.return
}

// -----

func.func @truncated_shape(%a: vector<4xf32>) {
  // expected-error@+1 {{shapes differ}}
  %s = loop.truncate %a : vector<4xf32> -> i32
  func.return
}

// -----

func.func @lanes(%a: vector<12xf32>) {
  // expected-error@+1 {{reduces a vector of 2^k elements}}
  %s = loop.reduce "add", %a : vector<12xf32> -> f32
  func.return
}

// -----

func.func @kind(%a: vector<8xf32>) {
  // expected-error@+1 {{the kind must be one of add, max}}
  %s = loop.reduce "mul", %a : vector<8xf32> -> f32
  func.return
}

// -----

func.func @reduced_type(%a: vector<8xi8>) {
  // expected-error@+1 {{reduces f32, f64 or i32}}
  %s = loop.reduce "add", %a : vector<8xi8> -> i8
  func.return
}

// -----

func.func @reduced_result(%a: vector<8xi32>) {
  // expected-error@+1 {{the result has the type of an element}}
  %s = loop.reduce "add", %a : vector<8xi32> -> f32
  func.return
}

// -----

func.func @filled_from(%a: vector<8xi32>) {
  // expected-error@+1 {{first must be inside the last dimension}}
  %s = loop.fill %a {first = 8 : i64, value = 1 : i32} : vector<8xi32>
  func.return
}

// -----

func.func @filled_with(%a: vector<8xi32>) {
  // expected-error@+1 {{fills f32, f64 or i32 with its like}}
  %s = loop.fill %a {first = 7 : i64, value = 1.0 : f32} : vector<8xi32>
  func.return
}

// -----

func.func @angle_part(%a: f32) {
  // expected-error@+1 {{the part must be "rest" or "quadrant"}}
  %s = loop.angle "turns", %a : f32
  func.return
}

// -----

func.func @angle_type(%a: i32) {
  // expected-error@+1 {{angles are f32 or f64}}
  %s = loop.angle "rest", %a : i32
  func.return
}
