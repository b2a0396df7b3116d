// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p plan-memory --split-input-file --verify-diagnostics | filecheck %s

// Lifetimes that do not overlap share bytes, through views; the bound is what is alive at once.
// CHECK-LABEL: func.func @main
// CHECK-SAME:    %arena: memref<{{[0-9]+}}xi8> {qcomp.arena}
// CHECK-SAME:    qcomp.arena_bound = 384 : i64
// CHECK:         %a = loop.view %arena {offset = 0 : i64} : memref<{{.*}}> to memref<64xf32>
// CHECK:         %b = loop.view %arena {offset = 256 : i64} : memref<{{.*}}> to memref<32xf32>
// CHECK:         %c = loop.view %arena {offset = 0 : i64} : memref<{{.*}}> to memref<48xf32>
func.func private @use(%x: memref<64xf32>, %y: memref<32xf32>) {
  func.return
}
func.func private @next(%x: memref<4x8xf32>, %y: memref<48xf32>) {
  func.return
}
func.func private @last(%x: memref<48xf32>, %y: memref<48xf32>) {
  func.return
}
func.func @main(%x: memref<48xf32>, %y: memref<48xf32> {qcomp.output}) {
  %a = memref.alloc() : memref<64xf32>
  %b = memref.alloc() : memref<32xf32>
  %unused = memref.alloc() : memref<1000xf32>
  func.call @use(%a, %b) : (memref<64xf32>, memref<32xf32>) -> ()
  %v = loop.view %b {offset = 0 : i64} : memref<32xf32> to memref<4x8xf32>
  %c = memref.alloc() : memref<48xf32>
  func.call @next(%v, %c) : (memref<4x8xf32>, memref<48xf32>) -> ()
  func.call @last(%c, %y) : (memref<48xf32>, memref<48xf32>) -> ()
  func.return
}

// -----

// In place where the kernel allows it and the operand is dead; not where it is read later.
// CHECK-LABEL: func.func @main
// CHECK:         %a = loop.view %arena {offset = [[A:[0-9]+]] : i64}
// CHECK:         %b = loop.view %arena {offset = [[A]] : i64}
// CHECK:         %c = loop.view %arena {offset = [[C:[0-9]+]] : i64}
func.func private @add(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>) {
  func.return
}
func.func @main(%x: memref<64xf32>, %y: memref<64xf32> {qcomp.output}) {
  %a = memref.alloc() : memref<64xf32>
  %b = memref.alloc() : memref<64xf32>
  %c = memref.alloc() : memref<64xf32>
  func.call @add(%x, %x, %a) : (memref<64xf32>, memref<64xf32>, memref<64xf32>) -> ()
  func.call @add(%a, %x, %b) {qcomp.may_alias = array<i64: 2, 0>} : (memref<64xf32>, memref<64xf32>, memref<64xf32>) -> ()
  func.call @add(%b, %b, %c) {qcomp.may_alias = array<i64: 2, 0, 2, 1>} : (memref<64xf32>, memref<64xf32>, memref<64xf32>) -> ()
  func.call @add(%b, %c, %y) {qcomp.may_alias = array<i64: 2, 0, 2, 1>} : (memref<64xf32>, memref<64xf32>, memref<64xf32>) -> ()
  func.return
}

// -----

// A buffer that the kernel also reads through an operand which it must not write over keeps its place.
// CHECK-LABEL: func.func @main
// CHECK:         %a = loop.view %arena {offset = [[A:[0-9]+]] : i64}
// CHECK-NOT:     %b = loop.view %arena {offset = [[A]] : i64}
// CHECK:         %b = loop.view %arena
func.func private @conv(%x: memref<64xf32>, %residual: memref<64xf32>, %z: memref<64xf32>) {
  func.return
}
func.func @main(%x: memref<64xf32>, %y: memref<64xf32> {qcomp.output}) {
  %a = memref.alloc() : memref<64xf32>
  %b = memref.alloc() : memref<64xf32>
  func.call @conv(%x, %x, %a) : (memref<64xf32>, memref<64xf32>, memref<64xf32>) -> ()
  func.call @conv(%a, %a, %b) {qcomp.may_alias = array<i64: 2, 1>} : (memref<64xf32>, memref<64xf32>, memref<64xf32>) -> ()
  func.call @conv(%b, %b, %y) : (memref<64xf32>, memref<64xf32>, memref<64xf32>) -> ()
  func.return
}

// -----

// expected-error@+1 {{the module has no function main}}
func.func @other() {
  func.return
}
