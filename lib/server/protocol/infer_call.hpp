#ifndef COACCEL_SERVER_PROTOCOL_INFER_CALL_HPP
#define COACCEL_SERVER_PROTOCOL_INFER_CALL_HPP

#include "server/protocol/infer_request.hpp"
#include "server/protocol/signature.hpp"

#include <coaccel/core/exec_options.hpp>
#include <coaccel/device/plan.hpp>

#include <cstdint>
#include <vector>

namespace coaccel::server {

/// A request that fits a model: the memory of its inputs and outputs, in the order of the model.
struct infer_call {
    /// An output of the reply.
    struct answer {
        std::uint32_t output = 0; ///< Its index in the model.
        bool binary = false;
    };

    std::uint64_t rows = 0;
    std::vector<run_range> ranges; ///< The inputs of the model, then the outputs.
    std::vector<answer> answers;   ///< In the order of the reply.
    /// The elements of all outputs, which the ranges refer to.
    std::vector<std::byte> memory;

    const run_range& output(std::uint32_t index, const model_signature& model) const noexcept
    {
        return ranges[model.inputs.size() + index];
    }
};

/// Checks a request against a model, and makes memory for its outputs. The inputs refer to the memory of the request.
///
/// Errors: errc::invalid_argument, errc::wrong_dtype or errc::length_mismatch, with a message that names the field and
/// the value. `into` is undefined then.
/// Exceptions: std::bad_alloc.
[[nodiscard]] error_code match_request(const infer_request& request, const model_signature& model, infer_call& into);

/// 0 and 2 are normal, 1 is high, and greater numbers are low, as a Triton server counts them.
priority priority_of(std::uint64_t level) noexcept;

} // namespace coaccel::server

#endif
