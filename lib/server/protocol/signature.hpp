#ifndef COACCEL_SERVER_PROTOCOL_SIGNATURE_HPP
#define COACCEL_SERVER_PROTOCOL_SIGNATURE_HPP

#include <coaccel/core/dtype.hpp>
#include <coaccel/serve/batch_model.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace coaccel::server {

/// An input or output of a model.
struct signature_tensor {
    std::string name;
    dtype type = dtype::u8;
    std::vector<std::uint64_t> dims; ///< Of one row.
    std::uint64_t count = 0;         ///< Elements of one row.
};

/// What a version of a model takes and gives.
struct model_signature {
    std::string model;
    std::string version;
    /// Whether shapes begin with the number of rows. Otherwise each request is one row.
    bool batched = true;
    std::uint32_t max_rows = 0; ///< The most rows of a request.
    std::vector<signature_tensor> inputs;
    std::vector<signature_tensor> outputs;
};

/// The signature of a model that a batcher runs.
model_signature signature_of(const serve::batch_model& from, std::string model, std::string version, bool batched,
                             std::uint32_t max_rows);

} // namespace coaccel::server

#endif
