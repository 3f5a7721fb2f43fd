// SPDX-License-Identifier: Apache-2.0
// One call of an operator of LibTorch as a value: everything that decides which code of a library computes it.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stoker::proof {

struct Operation {
  std::string name, overload;          ///< name and overload of the operator: "aten::convolution", ""
  std::vector<c10::IValue> arguments;  ///< tensors are on the meta device: shape, strides and type without numbers
  at::DeviceType device = at::kCPU;    ///< where they lie in the network
};

/// Whether an operator multiplies matrices: mm, addmm, bmm, baddbmm.
bool is_matrix_product(const std::string& name);

/// The arguments of the call that is being recorded: of a network from a file they are the last on a stack.
at::ArrayRef<const c10::IValue> arguments_of(const at::RecordFunction& function);

/// `arguments` without the numbers of their tensors.
Operation operation_of(std::string name, std::string overload, at::ArrayRef<const c10::IValue> arguments);

/// The operation for `images` images, from those for 2 and for 3: each size, stride and integer is a + b * images.
/// Throws Error{bug} where the two are not calls of the same operator with the same kinds of arguments.
Operation for_images(const Operation& of_two, const Operation& of_three, int64_t images);

/// The same text for operations that are computed alike: name, shapes, strides, types and other arguments.
std::string key_of(const Operation& operation);
std::string key_of(const std::string& name, at::ArrayRef<const c10::IValue> arguments);

/// The same text for operations that differ in the number of images alone, as far as one call shows that:
/// the first size and stride of tensors, all sizes of a product of matrices. Weights of convolutions keep theirs.
std::string family_of(const std::string& name, at::ArrayRef<const c10::IValue> arguments);
std::string family_of(const Operation& operation);

/// For people: "convolution, input 16x64x56x56, weight 64x64x3x3, stride 2, bfloat16, channels-last".
std::string text_of(const Operation& operation);

/// The elements of its tensors, in bytes: what one call reads.
int64_t argument_bytes(const Operation& operation);

// Which library computes an operation, and of which version.

/// "oneDNN 2.7.3", "OpenBLAS with OpenMP threads", "LibTorch 1.13.0, CPU build": as LibTorch chooses.
std::string library_of(const Operation& operation);

/// "oneDNN 2.7.3"; "oneDNN" where its version is unknown, "" where LibTorch has none.
std::string onednn_text();

}  // namespace stoker::proof
