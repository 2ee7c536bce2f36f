#include "serve/batcher_core.hpp"
#include "serve/plan_runner.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/serve/dynamic_batcher.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace coaccel::detail {
namespace {

/// Why these are no rows of this model; `rows` is how many they are.
error_code check_rows(std::string_view name, const serve::batch_model& m, std::span<const run_range> ranges,
                      std::uint64_t& rows) noexcept
{
    rows = 0;
    const auto inputs = m.inputs();
    const auto outputs = m.outputs();
    std::size_t next_input = 0;
    std::size_t next_output = 0;
    for (const run_range& r : ranges) {
        const bool is_input = r.direction == slot_kind::input;
        const auto& slots = is_input ? inputs : outputs;
        const std::size_t k = is_input ? next_input++ : next_output++;
        const char* const word = is_input ? "input" : "output";
        if (k >= slots.size())
            return op_error(errc::invalid_argument, name, {word, "s: the model has ", slots.size(), ", given more"});
        const plan_argument& a = slots[k];
        if (r.type != a.type)
            return op_error(
                errc::wrong_dtype, name,
                {word, " ", a.name, " has elements of type ", to_string(a.type), ", given ", to_string(r.type)});
        // Most requests have one row; the division would cost as much as all the rest.
        const std::uint64_t given = r.count == a.count ? 1 : r.count / a.count;
        if (r.count == 0 || r.count != given * a.count)
            return op_error(errc::length_mismatch, name,
                            {word, " ", a.name, " has ", a.count, " elements in each row, given ", r.count});
        if (rows != 0 && given != rows)
            return op_error(errc::length_mismatch, name,
                            {word, " ", a.name, " has ", given, " rows, the arguments before it ", rows});
        rows = given;
    }
    if (next_input < inputs.size())
        return op_error(errc::invalid_argument, name, {"input ", inputs[next_input].name, " is missing"});
    if (next_output < outputs.size())
        return op_error(errc::invalid_argument, name, {"output ", outputs[next_output].name, " is missing"});
    if (rows > m.plans().back().rows)
        return op_error(errc::length_mismatch, name,
                        {"the request has ", rows, " rows; a batch has at most ", m.plans().back().rows});
    return {};
}

} // namespace

matched_rows batch_models::match(std::span<const run_range> ranges) const noexcept
{
    matched_rows found;
    std::uint64_t rows = 0;
    for (std::size_t i = 0; i < models.size(); ++i) {
        const auto ec = check_rows(name, models[i], ranges, rows);
        // Several rows of one model may look like one row of another.
        if (!ec && (found.rows == 0 || rows < found.rows))
            found = {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(rows), {}};
        else if (i == 0)
            found.refused = ec;
    }
    if (found.rows == 0 && models.size() > 1)
        found.refused = op_error(errc::length_mismatch, name,
                                 {"the arguments are not those of any of its ", models.size(),
                                  " models; for the first one: ", found.refused.message()});
    return found;
}

matched_rows match_rows(const batcher_core* core, std::span<const run_range> ranges) noexcept
{
    return core ? static_cast<const plan_runner&>(core->runner()).models().match(ranges) : matched_rows{};
}

result<std::shared_ptr<batcher_handle>> make_plan_batcher(const asio::any_io_executor& ex, std::vector<device> devices,
                                                          std::vector<serve::batch_model> models,
                                                          const serve::batcher_options& options)
{
    if (auto ec = options.check())
        return ec;
    if (devices.empty() || models.empty())
        return op_error(errc::invalid_argument, options.name,
                        {devices.empty() ? "no device" : "no model", " is given"});
    if (std::ranges::find(devices, device()) != devices.end())
        return op_error(errc::invalid_argument, options.name, {"a device is empty"});
    std::uint32_t largest = 0;
    std::vector<std::uint32_t> sizes;
    for (const serve::batch_model& m : models) {
        if (!m)
            return op_error(errc::invalid_argument, options.name, {"a model is empty"});
        const std::uint32_t rows = m.plans().back().rows;
        if (largest != 0 && largest != rows)
            return op_error(errc::invalid_argument, options.name,
                            {"the largest plan of a model has ", rows, " rows, that of another ", largest});
        largest = rows;
        for (const serve::batch_plan& p : m.plans())
            sizes.push_back(p.rows);
    }
    if (options.max_rows > largest)
        return op_error(errc::invalid_option, options.name,
                        {"max_rows is ", options.max_rows, "; the largest plan has ", largest, " rows"});
    // Sizes that only some of the models have would mislead the choice of a size for the others.
    std::ranges::sort(sizes);
    std::vector<std::uint32_t> common;
    for (const std::uint32_t s : sizes)
        if (std::ranges::count(sizes, s) == static_cast<std::ptrdiff_t>(models.size()) &&
            (common.empty() || common.back() != s))
            common.push_back(s);
    serve::batcher_options how = options;
    if (how.max_rows == 0)
        how.max_rows = largest;
    how.run_limit = {};
    auto shared = std::make_shared<batch_models>();
    shared->name = options.name;
    shared->models = std::move(models);
    auto runner = std::make_unique<plan_runner>(std::move(devices), shared, how);
    return std::make_shared<batcher_handle>(make_batcher(ex, how, std::move(common), std::move(runner)));
}

} // namespace coaccel::detail
