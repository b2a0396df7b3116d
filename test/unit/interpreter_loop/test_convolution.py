# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole kernels of the kind that lowering makes, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from loop_case import run, same_bits
from numpy.typing import NDArray


def direct(x: NDArray, w: NDArray, stride: int) -> NDArray:
    """The convolution of x [H, W, C] with w [O, KH, KW, C], no padding: [OH, OW, O] in int64."""
    kh, kw = w.shape[1:3]
    oh, ow = ((size - kernel) // stride + 1 for size, kernel in zip(x.shape[:2], (kh, kw), strict=True))
    acc = np.zeros((oh, ow, w.shape[0]), np.int64)
    for i in range(kh):
        for j in range(kw):
            window = x[i : i + stride * oh : stride, j : j + stride * ow : stride][:oh, :ow]
            acc += window.astype(np.int64) @ w[:, i, j].astype(np.int64).T
    return acc


@pytest.mark.parametrize("kind", ["parallel", ""])
def test_tiled_3x3_with_epilogue_into_a_padded_buffer(kind: str):
    """11 x 10 pixels, 8 channels to 32: tiles of 5 pixels x 2 registers x 8, k runs over (kw, c)."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (13, 12, 8)).astype(np.uint8)
    w = rng.integers(-128, 128, (32, 3, 3, 8)).astype(np.int8)
    bias = rng.integers(-9000, 9000, 32).astype(np.int32)
    scale = rng.uniform(1e-3, 3e-3, 32).astype(np.float32)
    packed = w.reshape(2, 2, 8, 3, 6, 4).transpose(0, 3, 4, 1, 2, 5)
    (got,) = run(
        f"""
func.func @main(%x: memref<13x96xi8>, %w: memref<2x3x6x2x8x4xi8>, %bias: memref<2x2x8xi32>,
                %scale: memref<2x2x8xf32>, %y: memref<13x12x32xi8> {{qcomp.output, qcomp.unsigned}}) {{
  loop.for %oc = [0] to [2] {kind} {{
    loop.for %oh = [0] to [11] {kind} {{
      loop.for %ow = [0] to [10] step 5 {{
        %b = loop.load %bias[%oc, 0, 0] over (1, 2) : memref<2x2x8xi32>, vector<2x8xi32>
        %a0 = loop.broadcast %b : vector<2x8xi32> to vector<5x2x8xi32>
        %acc = loop.for %kh = [0] to [3] iter (%a = %a0) : vector<5x2x8xi32> {{
          %acc1 = loop.for %k = [0] to [6] iter (%a1 = %a) : vector<5x2x8xi32> {{
            %p = loop.load %x[%oh + %kh, %ow * 8 + %k * 4] over (1 step 8, 1) : memref<13x96xi8>, vector<5x4xi8>
            %q = loop.load %w[%oc, %kh, %k, 0, 0, 0] over (3, 4, 5) : memref<2x3x6x2x8x4xi8>, vector<2x8x4xi8>
            %c = loop.contract %a1, %p, %q {{lhs_unsigned}} : vector<5x4xi8>, vector<2x8x4xi8> -> vector<5x2x8xi32>
            loop.yield %c : vector<5x2x8xi32>
          }}
          loop.yield %acc1 : vector<5x2x8xi32>
        }}
        %s = loop.load %scale[%oc, 0, 0] over (1, 2) : memref<2x2x8xf32>, vector<2x8xf32>
        %sb = loop.broadcast %s : vector<2x8xf32> to vector<5x2x8xf32>
        %f = loop.to_float %acc : vector<5x2x8xi32> -> vector<5x2x8xf32>
        %m = arith.mulf %f, %sb : vector<5x2x8xf32>
        %r = loop.round %m {{bounded}} : vector<5x2x8xf32> -> vector<5x2x8xi32>
        %z = arith.constant dense<17> : vector<5x2x8xi32>
        %rz = arith.addi %r, %z : vector<5x2x8xi32>
        %n = loop.narrow %rz {{min = 17 : i64, max = 240 : i64}} : vector<5x2x8xi32> -> vector<5x2x8xi8>
        loop.store %n, %y[%oh + 1, %ow + 1, %oc * 16] over (1, 2 step 8, 2) : memref<13x12x32xi8>, vector<5x2x8xi8>
      }}
    }}
  }}
  func.return
}}""",
        x.reshape(13, 96),
        np.ascontiguousarray(packed),
        bias.reshape(2, 2, 8),
        scale.reshape(2, 2, 8),
    )
    real = (direct(x, w, 1) + bias).astype(np.int32).astype(np.float32) * scale
    expected = np.full((13, 12, 32), 0xCD, np.uint8)
    expected[1:12, 1:11] = np.clip(np.rint(real) + 17, 17, 240)
    assert same_bits(got, expected)
    assert 17 < np.median(got[1:12, 1:11]) < 240


@pytest.mark.parametrize("kind", ["parallel", ""])
def test_stride_2_with_a_partial_tile(kind: str):
    """11 x 13 pixels to 5 x 6, 7 output channels in registers of 8, 12 values of k in groups of 4."""
    rng = np.random.default_rng(1)
    x = rng.integers(-128, 128, (11, 13, 4)).astype(np.int8)
    w = rng.integers(-128, 128, (7, 2, 3, 4)).astype(np.int8)
    packed = np.zeros((2, 3, 8, 4), np.int8)
    packed[:, :, :7] = w.transpose(1, 2, 0, 3)
    (got,) = run(
        f"""
func.func @main(%x: memref<11x13x4xi8>, %w: memref<2x3x8x4xi8>, %y: memref<5x6x7xi32> {{qcomp.output}}) {{
  %zero = arith.constant dense<0> : vector<3x8xi32>
  loop.for %oh = [0] to [5] {kind} {{
    loop.for %ow = [0] to [6] step 3 {kind} {{
      %acc = loop.for %kh = [0] to [2] iter (%a = %zero) : vector<3x8xi32> {{
        %acc1 = loop.for %kw = [0] to [3] unroll iter (%a1 = %a) : vector<3x8xi32> {{
          %p = loop.load %x[%oh * 2 + %kh, %ow * 2 + %kw, 0] over (1 step 2, 2) : memref<11x13x4xi8>, vector<3x4xi8>
          %q = loop.load %w[%kh, %kw, 0, 0] over (2, 3) : memref<2x3x8x4xi8>, vector<8x4xi8>
          %c = loop.contract %a1, %p, %q : vector<3x4xi8>, vector<8x4xi8> -> vector<3x8xi32>
          loop.yield %c : vector<3x8xi32>
        }}
        loop.yield %acc1 : vector<3x8xi32>
      }}
      loop.store %acc, %y[%oh, %ow, 0] over (1, 2) valid 7 : memref<5x6x7xi32>, vector<3x8xi32>
    }}
  }}
  func.return
}}""",
        x,
        packed,
    )
    assert same_bits(got, direct(x, w, 2).astype(np.int32))


def test_scalar_code_as_the_generic_target_has_it():
    """Plain loops, one element at a time, signed with a zero point of the input."""
    rng = np.random.default_rng(2)
    x = rng.integers(-128, 128, (7, 6, 3)).astype(np.int8)
    w = rng.integers(-127, 128, (5, 3, 2, 3)).astype(np.int8)
    (got,) = run(
        """
func.func @main(%x: memref<7x6x3xi8>, %w: memref<5x3x2x3xi8>, %y: memref<5x5x5xi32> {qcomp.output}) {
  %zero = arith.constant 0 : i32
  %zx = arith.constant -11 : i32
  loop.for %oh = [0] to [5] parallel {
    loop.for %ow = [0] to [5] {
      loop.for %oc = [0] to [5] {
        %s = loop.for %kh = [0] to [3] iter (%a = %zero) : i32 {
          %s1 = loop.for %kw = [0] to [2] iter (%a1 = %a) : i32 {
            %s2 = loop.for %c = [0] to [3] iter (%a2 = %a1) : i32 {
              %p = loop.load %x[%oh + %kh, %ow + %kw, %c] : memref<7x6x3xi8>, i8
              %q = loop.load %w[%oc, %kh, %kw, %c] : memref<5x3x2x3xi8>, i8
              %pe = loop.extend %p : i8 -> i32
              %qe = loop.extend %q : i8 -> i32
              %pz = arith.subi %pe, %zx : i32
              %m = arith.muli %pz, %qe : i32
              %r = arith.addi %a2, %m : i32
              loop.yield %r : i32
            }
            loop.yield %s2 : i32
          }
          loop.yield %s1 : i32
        }
        loop.store %s, %y[%oh, %ow, %oc] : memref<5x5x5xi32>, i32
      }
    }
  }
  func.return
}""",
        x,
        w,
    )
    assert same_bits(got, direct(x.astype(np.int64) + 11, w, 1).astype(np.int32))


@pytest.mark.parametrize("kind", ["parallel", ""])
def test_depthwise_multiply_adds(kind: str):
    rng = np.random.default_rng(3)
    x = rng.integers(0, 256, (6, 9, 8)).astype(np.uint8)
    w = rng.integers(-128, 128, (3, 3, 8)).astype(np.int8)
    (got,) = run(
        f"""
func.func @main(%x: memref<6x9x8xi8>, %w: memref<3x3x8xi8>, %y: memref<4x7x8xi32> {{qcomp.output}}) {{
  %zero = arith.constant dense<-3> : vector<7x8xi32>
  loop.for %oh = [0] to [4] {kind} {{
    %acc = loop.for %kh = [0] to [3] iter (%a = %zero) : vector<7x8xi32> {{
      %acc1 = loop.for %kw = [0] to [3] iter (%a1 = %a) : vector<7x8xi32> {{
        %p = loop.load %x[%oh + %kh, %kw, 0] over (1, 2) : memref<6x9x8xi8>, vector<7x8xi8>
        %q = loop.load %w[%kh, %kw, 0] over (2) : memref<3x3x8xi8>, vector<8xi8>
        %qb = loop.broadcast %q : vector<8xi8> to vector<7x8xi8>
        %c = loop.multiply_add %a1, %p, %qb {{lhs_unsigned}} : vector<7x8xi8>, vector<7x8xi8> -> vector<7x8xi32>
        loop.yield %c : vector<7x8xi32>
      }}
      loop.yield %acc1 : vector<7x8xi32>
    }}
    loop.store %acc, %y[%oh, 0, 0] over (1, 2) : memref<4x7x8xi32>, vector<7x8xi32>
  }}
  func.return
}}""",
        x,
        w,
    )
    products = [x[i : i + 4, j : j + 7].astype(np.int32) * w[i, j] for i in range(3) for j in range(3)]
    assert same_bits(got, np.asarray(np.sum(products, 0) - 3, np.int32))


def test_float_outer_products():
    """Each product and sum is rounded to float32, in the order of the loop."""
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(9, 6)).astype(np.float32), rng.normal(size=(6, 5)).astype(np.float32)
    (got,) = run(
        """
func.func @main(%a: memref<9x6xf32>, %b: memref<6x5xf32>, %y: memref<9x5xf32> {qcomp.output}) {
  %zero = arith.constant dense<0.0> : vector<3x5xf32>
  loop.for %i = [0] to [9] step 3 parallel {
    %acc = loop.for %k = [0] to [6] iter (%s = %zero) : vector<3x5xf32> {
      %p = loop.load %a[%i, %k] over (0, 1) : memref<9x6xf32>, vector<3x1xf32>
      %q = loop.load %b[%k, 0] over (1, 0) : memref<6x5xf32>, vector<5x1xf32>
      %c = loop.contract %s, %p, %q : vector<3x1xf32>, vector<5x1xf32> -> vector<3x5xf32>
      loop.yield %c : vector<3x5xf32>
    }
    loop.store %acc, %y[%i, 0] over (0, 1) : memref<9x5xf32>, vector<3x5xf32>
  }
  func.return
}""",
        a,
        b,
    )
    expected = np.zeros((9, 5), np.float32)
    for k in range(6):
        expected = expected + a[:, k : k + 1] * b[k]
    assert same_bits(got, expected)


def test_accumulators_wrap_like_machine_integers():
    x = np.full(4, 255, np.uint8)
    (got,) = run(
        """
func.func @main(%x: memref<4xi8>, %y: memref<1xi32> {qcomp.output}) {
  %start = arith.constant 2147483000 : i32
  %p = loop.load %x[0] over (0) : memref<4xi8>, vector<4xi8>
  %c = loop.contract %start, %p, %p {lhs_unsigned, rhs_unsigned} : vector<4xi8>, vector<4xi8> -> i32
  loop.store %c, %y[0] : memref<1xi32>, i32
  func.return
}""",
        x,
    )
    assert got.tolist() == [(2147483000 + 4 * 255 * 255) - 2**32]
