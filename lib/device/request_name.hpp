#ifndef COACCEL_DEVICE_REQUEST_NAME_HPP
#define COACCEL_DEVICE_REQUEST_NAME_HPP

#include <coaccel/core/detail/request.hpp>

#include <cstdint>
#include <span>
#include <string>

// How requests are named in statistics and traces.
namespace coaccel::detail {

/// The ops of a request, without the allocation that precedes a copy.
COACCEL_DECL std::span<const bound_op> counted_ops(const request& r) noexcept;

/// Equal for requests of the same name. Uses ids, because ops with caller-defined arguments have many descriptions but
/// one name. Preconditions: the request has a title or ops.
COACCEL_DECL std::uint64_t name_key(const request& r) noexcept;

/// The title of the request, or the name of its op. For a seq: "seq(memory.fill<f32>, memory.copy<f32>)"; a long one
/// lists the first four.
COACCEL_DECL std::string name_text(const request& r);

} // namespace coaccel::detail

#endif
