#include "jit/image.hpp"
#include "seeds.hpp"
#include "support/example_plans.hpp"
#include "support/plan_files.hpp"

#include <coaccel/ops/jit.hpp>

namespace fuzz {
namespace {

using namespace coaccel;

plan_description kernel_plan()
{
    jit::compile_options options("scale");
    options.option("-O").include_folder("/i").add_header("h", "t");
    const auto k = jit::make_kernel(options, {.symbol = "_Z5scalePKfPff", .code = "code", .log = {}, .source = "s"});
    plan_builder b("kernel");
    const auto x = b.input<float>(4);
    b.add(jit::launch(k.value(), {}, in(x), out(b.output<float>(4)), 2.0f));
    return b.finish().value();
}

} // namespace

std::vector<script> plan_file_seeds()
{
    std::vector<script> seeds;
    for (const auto& plan : {test::varied_plan(), test::axpy_plan(), test::counting_plan(), kernel_plan()}) {
        auto file = test::file_of(plan);
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
