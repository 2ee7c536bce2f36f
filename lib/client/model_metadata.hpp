#ifndef COACCEL_CLIENT_MODEL_METADATA_HPP
#define COACCEL_CLIENT_MODEL_METADATA_HPP

#include "client/tensor.hpp"

#include <coaccel/core/result.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace coaccel::client {

/// An input of a model as its metadata describe it.
struct input_description {
    std::string name;                ///< The name.
    std::string datatype;            ///< As in the Open Inference Protocol.
    std::vector<std::int64_t> shape; ///< -1: any size, such as the rows of a batch.
};

/// The inputs in the metadata of a model.
///
/// Errors: errc::invalid_argument, with what is wrong with the document.
/// Exceptions: std::bad_alloc.
result<std::vector<input_description>> parse_inputs(std::string_view document);

/// A tensor for the input, with pseudo-random elements that depend only on `seed`: from 0 to 1 for floating-point
/// types, 0 to 9 for integers. `rows` is the size of dimensions of any size.
///
/// Errors: errc::invalid_argument for a type without numbers, and for more than 1 GiB.
/// Exceptions: std::bad_alloc.
result<tensor> make_input(const input_description& input, std::uint64_t rows, std::uint64_t seed);

} // namespace coaccel::client

#endif
