#include "server/protocol/signature.hpp"

#include <span>
#include <utility>

namespace coaccel::server {
namespace {

std::vector<signature_tensor> tensors_of(std::span<const plan_argument> arguments, bool batched)
{
    std::vector<signature_tensor> all;
    for (const plan_argument& a : arguments) {
        signature_tensor t{a.name, a.type, a.shape.dims, a.count};
        // One element for each row has no dimensions of its own.
        if (!a.shape && !(batched && a.count == 1))
            t.dims = {a.count};
        all.push_back(std::move(t));
    }
    return all;
}

} // namespace

model_signature signature_of(const serve::batch_model& from, std::string model, std::string version, bool batched,
                             std::uint32_t max_rows)
{
    model_signature s;
    s.model = std::move(model);
    s.version = std::move(version);
    s.batched = batched;
    s.max_rows = max_rows;
    s.inputs = tensors_of(from.inputs(), batched);
    s.outputs = tensors_of(from.outputs(), batched);
    return s;
}

} // namespace coaccel::server
