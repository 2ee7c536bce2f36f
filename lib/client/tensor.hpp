#ifndef COACCEL_CLIENT_TENSOR_HPP
#define COACCEL_CLIENT_TENSOR_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coaccel::client {

/// An input or output of a model, with its elements.
struct tensor {
    std::string name;                 ///< In the model; may be empty for a tensor from a file.
    std::string datatype;             ///< As in the Open Inference Protocol, such as "FP32".
    std::vector<std::uint64_t> shape; ///< The outermost dimension first.
    std::string data;                 ///< The elements in little-endian order, the last dimension contiguous.

    bool operator==(const tensor&) const = default;
};

/// The bytes of an element; 0 for a type of another size than that of its elements, such as "BYTES", or an unknown one.
std::size_t element_bytes(std::string_view datatype) noexcept;

/// The bytes of all elements; empty if they do not fit in 63 bits, or the type is unknown.
std::optional<std::uint64_t> tensor_bytes(std::string_view datatype, const std::vector<std::uint64_t>& shape) noexcept;

/// "[3, 4]".
std::string shape_text(const std::vector<std::uint64_t>& shape);

} // namespace coaccel::client

#endif
