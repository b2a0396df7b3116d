// RUN: qcomp-opt %s --split-input-file --verify-diagnostics

func.func @format(%a: i16) {
  // expected-error@+1 {{the format must be f16 or bf16}}
  %c = loop.widen_half %a as f32 : i16 -> f32
  func.return
}

// -----

func.func @shape(%a: vector<4xi16>) {
  // expected-error@+1 {{shapes differ}}
  %c = loop.widen_half %a as f16 : vector<4xi16> -> f32
  func.return
}

// -----

func.func @wide(%a: i32) {
  // expected-error@+1 {{turns i16 into f32}}
  %c = loop.widen_half %a as f16 : i32 -> f32
  func.return
}

// -----

func.func @narrow(%a: f64) {
  // expected-error@+1 {{turns f32 into i16}}
  %c = loop.narrow_half %a as bf16 : f64 -> i16
  func.return
}
