#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/serve/batch_model.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace coaccel::serve {
namespace {

using detail::op_error;

constexpr std::string_view subject = "batch_model";

std::string_view name_of(const plan_description& p) noexcept
{
    return p.name().empty() ? std::string_view("without a name") : std::string_view(p.name());
}

error_code check_plan(const batch_plan& b)
{
    const auto refuse = [&](std::initializer_list<detail::message_part> rest) {
        std::string text;
        for (const auto& part : rest)
            part.append_to(text);
        return op_error(errc::invalid_argument, subject, {"the plan ", name_of(b.plan), " ", text});
    };
    if (!b.plan)
        return op_error(errc::invalid_argument, subject, {"the plan for ", b.rows, " rows is empty"});
    if (b.rows == 0)
        return refuse({"has a size of 0 rows"});
    if (b.plan.inputs().empty() || b.plan.outputs().empty())
        return refuse({b.plan.inputs().empty() ? "has no input" : "has no output"});
    if (!b.plan.parameters().empty())
        return refuse({"has the parameter ", b.plan.parameters().front().name,
                       ", which would be common to all requests of a batch"});
    if (b.plan.memory().states > 0)
        return refuse({"has states, which would be common to all requests of a batch"});
    return {};
}

/// The shape of one row of an argument; none if it is not known.
plan_shape row_of(const plan_argument& a, std::uint32_t rows)
{
    plan_shape row = a.shape;
    if (row.batched)
        row.dims.erase(row.dims.begin());
    else if (rows != 1)
        row = {};
    row.batched = false;
    return row;
}

/// The arguments for one row.
result<std::vector<plan_argument>> rows_of(const batch_plan& b, std::vector<plan_argument> all, const char* word)
{
    for (plan_argument& a : all) {
        if (a.count % b.rows != 0)
            return op_error(errc::invalid_argument, subject,
                            {"the ", word, " ", a.name, " of the plan ", name_of(b.plan), " has ", a.count,
                             " elements, which is no multiple of ", b.rows, " rows"});
        if (a.shape.batched && a.shape.dims[0] != b.rows)
            return op_error(errc::invalid_argument, subject,
                            {"the ", word, " ", a.name, " of the plan ", name_of(b.plan), " has a shape of ",
                             a.shape.dims[0], " rows, the plan a size of ", b.rows});
        a.shape = row_of(a, b.rows);
        a.count /= b.rows;
    }
    return all;
}

/// Whether they fit those of the plans before. A shape that those do not have is taken over.
error_code compare(std::vector<plan_argument>& expected, const std::vector<plan_argument>& given, const batch_plan& b,
                   const char* word)
{
    if (expected.size() != given.size())
        return op_error(
            errc::invalid_argument, subject,
            {"the plan ", name_of(b.plan), " has ", given.size(), " ", word, "s, another has ", expected.size()});
    for (std::size_t i = 0; i < given.size(); ++i) {
        if (!expected[i].shape)
            expected[i].shape = given[i].shape;
        else if (given[i].shape && expected[i].shape != given[i].shape)
            return op_error(errc::invalid_argument, subject,
                            {"the ", word, " ", given[i].name, " of the plan ", name_of(b.plan), " has the shape ",
                             to_string(given[i].shape), " in each row, that of another plan ",
                             to_string(expected[i].shape)});
        if (expected[i].type != given[i].type || expected[i].count != given[i].count)
            return op_error(errc::invalid_argument, subject,
                            {"the ", word, " ", given[i].name, " of the plan ", name_of(b.plan), " has ",
                             given[i].count, " elements of type ", to_string(given[i].type),
                             " in each row, that of another plan ", expected[i].count, " of type ",
                             to_string(expected[i].type)});
    }
    return {};
}

} // namespace

struct batch_model::data {
    std::vector<batch_plan> plans;
    std::vector<plan_argument> inputs;
    std::vector<plan_argument> outputs;
};

result<batch_model> batch_model::create(std::vector<batch_plan> plans)
{
    if (plans.empty())
        return op_error(errc::invalid_argument, subject, {"there is no plan"});
    std::ranges::sort(plans, {}, &batch_plan::rows);
    auto made = std::make_shared<data>();
    for (std::size_t i = 0; i < plans.size(); ++i) {
        const batch_plan& b = plans[i];
        if (auto ec = check_plan(b))
            return ec;
        if (i > 0 && plans[i - 1].rows == b.rows)
            return op_error(errc::invalid_argument, subject, {"two plans have a size of ", b.rows, " rows"});
        BOOST_OUTCOME_TRY(auto inputs, rows_of(b, b.plan.inputs(), "input"));
        BOOST_OUTCOME_TRY(auto outputs, rows_of(b, b.plan.outputs(), "output"));
        if (i == 0) {
            made->inputs = std::move(inputs);
            made->outputs = std::move(outputs);
            continue;
        }
        if (auto ec = compare(made->inputs, inputs, b, "input"))
            return ec;
        if (auto ec = compare(made->outputs, outputs, b, "output"))
            return ec;
    }
    made->plans = std::move(plans);
    batch_model model;
    model.data_ = std::move(made);
    return model;
}

result<batch_model> batch_model::create(const plan_set_description& set, std::span<const std::uint32_t> sizes)
{
    if (set.size() != sizes.size())
        return op_error(errc::length_mismatch, subject,
                        {"the set has ", set.size(), " plans, given ", sizes.size(), " sizes"});
    std::vector<batch_plan> plans;
    for (std::size_t i = 0; i < sizes.size(); ++i)
        plans.push_back({sizes[i], set[i]});
    return create(std::move(plans));
}

result<batch_model> batch_model::create(const plan_set_description& set)
{
    std::vector<batch_plan> plans;
    for (std::size_t i = 0; i < set.size(); ++i) {
        const plan_description& p = set[i];
        for (const auto& all : {p.inputs(), p.outputs()})
            for (const plan_argument& a : all)
                if (!a.shape.batched)
                    return op_error(errc::invalid_argument, subject,
                                    {a.name, " of the plan ", name_of(p), " has a shape without rows"});
        // More rows than that are too many elements, too.
        plans.push_back({static_cast<std::uint32_t>(std::min<std::uint64_t>(p.rows(), 0xffffffff)), p});
    }
    return create(std::move(plans));
}

std::span<const batch_plan> batch_model::plans() const noexcept
{
    return data_ ? std::span<const batch_plan>(data_->plans) : std::span<const batch_plan>();
}

std::span<const plan_argument> batch_model::inputs() const noexcept
{
    return data_ ? std::span<const plan_argument>(data_->inputs) : std::span<const plan_argument>();
}

std::span<const plan_argument> batch_model::outputs() const noexcept
{
    return data_ ? std::span<const plan_argument>(data_->outputs) : std::span<const plan_argument>();
}

} // namespace coaccel::serve
