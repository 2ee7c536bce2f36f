#include "jit/image.hpp"
#include "seeds.hpp"
#include "support/example_plans.hpp"
#include "support/plan_files.hpp"

#include <coaccel/ops/jit.hpp>

#include <algorithm>

namespace fuzz {
namespace {

using namespace coaccel;

jit::kernel scale()
{
    jit::compile_options options("scale");
    options.option("-O").include_folder("/i").add_header("h", "t");
    return jit::make_kernel(options, {.symbol = "_Z5scalePKfPff", .code = "code", .log = {}, .source = "s"}).value();
}

plan_description kernel_plan()
{
    plan_builder b("kernel");
    const auto x = b.input<float>(4);
    b.add(jit::launch(scale(), {}, in(x), out(b.output<float>(4)), 2.0f));
    return b.finish().value();
}

plan_set_description kernel_set()
{
    const auto k = scale();
    plan_set_builder set("kernels");
    const auto s = set.state<float>(4, durable{suspect_rule::keep});
    for (const char* name : {"a", "b"}) {
        plan_builder& b = set.plan(name);
        b.add(jit::launch(k, {}, in(b.input<float>(4)), out(s), 2.0f));
    }
    return set.finish().value();
}

} // namespace

std::vector<script> plan_file_seeds()
{
    std::vector<test::file_bytes> files;
    for (const auto& plan : {test::varied_plan(), test::axpy_plan(), test::counting_plan(), kernel_plan()})
        files.push_back(test::file_of(plan));
    for (const auto& set : {test::varied_set(), test::counting_set(), kernel_set()})
        files.push_back(test::file_of(set));
    std::vector<script> seeds;
    for (auto& file : files) {
        seeds.emplace_back().put(std::uint8_t(0)).put_rest(file);
        const auto description = test::description_of(file);
        const auto begin =
            std::min<std::size_t>(file.size(), detail::aligned_content(sizeof(detail::plan_file_header) +
                                                                       test::header_of(file).description_bytes));
        for (const std::uint8_t flags : {std::uint8_t(sealed), std::uint8_t(sealed | unchecked)})
            seeds.emplace_back().put(flags).put_record(description).put_rest(std::span(file).subspan(begin));
    }
    return seeds;
}

} // namespace fuzz
