// RUN: qcomp-opt %s | filecheck %s
// RUN: qcomp-opt %s --expand-types | qcomp-opt | filecheck %s
// RUN: qcomp-opt %s --expand-types | filecheck %s --check-prefix=EXPANDED
// RUN: qcomp-opt %s -o %t.mlir && qcomp-opt %t.mlir -o %t.again.mlir && cmp %t.mlir %t.again.mlir
// RUN: qcomp-opt %s -o %t.mlir && qcomp-opt %t.mlir --expand-types | filecheck %s --check-prefix=EXPANDED

// CHECK-LABEL: func.func private @per_tensor(
// CHECK-SAME:  tensor<3x!quant.uniform<i8:f32, 0.02>>
func.func private @per_tensor(tensor<3x!quant.uniform<i8<-128:127>:f32, 0.02:0>>)

// CHECK-LABEL: func.func private @unsigned_with_zero_point(
// CHECK-SAME:  tensor<!quant.uniform<u8:f32, 0.0235:114>>
func.func private @unsigned_with_zero_point(tensor<!quant.uniform<u8:f32, 2.35e-2:114>>)

// CHECK-LABEL: func.func private @every_digit_of_a_scale(
// CHECK-SAME:  !quant.uniform<i8:f32, 0.007874015748031496:-3>
// CHECK-SAME:  !quant.uniform<i8:f32, 1.0e-05>
// CHECK-SAME:  !quant.uniform<i8:f32, 1.2345678901234567e+30>
func.func private @every_digit_of_a_scale(!quant.uniform<i8:f32, 0.007874015748031496:-3>,
    !quant.uniform<i8:f32, 0.00001>, !quant.uniform<i8:f32, 1.2345678901234567e30>)

// CHECK-LABEL: func.func private @narrow_range_and_widths(
// CHECK-SAME:  !quant.uniform<i8<-127:127>:f32, 0.5>
// CHECK-SAME:  !quant.uniform<u4<1:14>:f16, 0.5:7>
// CHECK-SAME:  !quant.uniform<i16:bf16, 0.5:-300>
// CHECK-SAME:  !quant.uniform<i32:f64, 0.5>
func.func private @narrow_range_and_widths(!quant.uniform<i8<-127:127>:f32, 0.5>,
    !quant.uniform<u4<1:14>:f16, 0.5:7>, !quant.uniform<i16:bf16, 0.5:-300>, !quant.uniform<i32:f64, 0.5>)

// CHECK-LABEL: func.func private @per_axis(
// CHECK-SAME:  tensor<2x3x!quant.uniform<i8<-127:127>:f32:1, {0.1, 0.2:5, 0.3:-7}>>
// CHECK-SAME:  tensor<1x!quant.uniform<i8:f32:0, {0.25}>>
func.func private @per_axis(tensor<2x3x!quant.uniform<i8<-127:127>:f32:1, {0.1, 0.2:5, 0.3:-7}>>,
    tensor<1x!quant.uniform<i8:f32:0, {0.25:0}>>)

// CHECK-LABEL: func.func private @sub_channel(
// CHECK-SAME:  tensor<2x6x!quant.uniform<i8:f32:{0:1, 1:3}, {{\{\{}}0.1, 0.2:5}, {0.3:-7, 0.4}}>>
func.func private @sub_channel(tensor<2x6x!quant.uniform<i8:f32:{0:1, 1:3}, {{0.1, 0.2:5}, {0.3:-7, 0.4}}>>)

// Up to 16 parameters stand in the text.
// CHECK-LABEL: func.func private @sixteen(
// CHECK-SAME:  :0, {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.75}>
func.func private @sixteen(!quant.uniform<i8:f32:0, {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5,
    0.5, 0.5, 0.75}>)

// CHECK-LABEL: func.func private @seventeen(
// CHECK-SAME:  !quant.uniform<i8:f32:0, #nn.data<"{{[0-9a-f]+}}" : tensor<17xf64>>>
// EXPANDED-LABEL: func.func private @seventeen(
// EXPANDED-SAME:  :0, {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.75}>
func.func private @seventeen(!quant.uniform<i8:f32:0, {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5,
    0.5, 0.5, 0.5, 0.75}>)

// CHECK-LABEL: func.func private @seventeen_with_zero_points(
// CHECK-SAME:  #nn.data<"[[SCALES:[0-9a-f]+]]" : tensor<17xf64>>:#nn.data<"{{[0-9a-f]+}}" : tensor<17xi64>>>
// The same scales are the same constant.
// CHECK-SAME:  !quant.uniform<u8:f32:1, #nn.data<"[[SCALES]]" : tensor<17xf64>>>
// EXPANDED-LABEL: func.func private @seventeen_with_zero_points(
// EXPANDED-SAME:  :0, {0.25, 0.25, 0.25, 0.25:-3, 0.25,
func.func private @seventeen_with_zero_points(
    !quant.uniform<i8:f32:0, {0.25, 0.25, 0.25, 0.25:-3, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25,
      0.25, 0.25, 0.25}>,
    !quant.uniform<u8:f32:1, {0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25,
      0.25, 0.25, 0.25}>)

// CHECK-LABEL: func.func private @many_blocks(
// CHECK-SAME:  :{0:1, 1:32}, #nn.data<"{{[0-9a-f]+}}" : tensor<9x2xf64>>>
// EXPANDED-LABEL: func.func private @many_blocks(
// EXPANDED-SAME:  :{0:1, 1:32}, {{\{\{}}0.5, 0.25}, {0.5, 0.25}, {0.5, 0.25}, {0.5, 0.25}, {0.5, 0.25},
func.func private @many_blocks(!quant.uniform<i8:f32:{0:1, 1:32}, {{0.5, 0.25}, {0.5, 0.25}, {0.5, 0.25}, {0.5, 0.25},
    {0.5, 0.25}, {0.5, 0.25}, {0.5, 0.25}, {0.5, 0.25}, {0.5, 0.25}}>)

// Few parameters may be given as constants, too.
// CHECK-LABEL: func.func private @by_constant(
// CHECK-SAME:  :0, {0.5, 0.25:7}>
func.func private @by_constant(!quant.uniform<i8:f32:0, #nn.data<dense<[0.5, 0.25]> : tensor<2xf64>>:#nn.data<dense<[0, 7]>
    : tensor<2xi64>>>)

// A scale in hexadecimal digits is the bits of a float64; a zero point is a number.
// CHECK-LABEL: func.func private @hexadecimal(
// CHECK-SAME:  !quant.uniform<i8:f32, 1.5:16>, !quant.uniform<i8:f32:0, {0.25, 0.1:-3}>
func.func private @hexadecimal(!quant.uniform<i8:f32, 0x3FF8000000000000:0x10>,
    !quant.uniform<i8:f32:0, {0.25, 0x3FB999999999999A:-3}>)
