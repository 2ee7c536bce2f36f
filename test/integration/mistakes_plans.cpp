#include "mistakes.hpp"
#include "support/device_fixture.hpp"
#include "support/numbers.hpp"

#include <coaccel/device/plan.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_set_builder.hpp>

#include <boost/asio/use_future.hpp>

#include <functional>
#include <vector>

namespace test {
namespace {

using namespace coaccel;
using copy = memory::copy<float>;
using gemv = blas::gemv<float>;
using scal = blas::scal<float>;

/// The slots of a plan that multiplies by two matrices.
struct classifier {
    plan_builder b{"classify"};
    ref<float> x = b.input<float>(1024, "x");
    ref<float> first = b.constant<float>(std::vector<float>(512 * 1024, 1.0f), "first");
    ref<float> second = b.constant<float>(std::vector<float>(10 * 512, 1.0f), "second");
    ref<float> h = b.scratch<float>(512, "h");
    ref<float> y = b.output<float>(10, "y");
    gemv layer1{.a = first, .x = x, .y = h, .m = 512, .n = 1024};
    gemv layer2{.a = second, .x = h, .y = y, .m = 10, .n = 512};

    plan_description finish()
    {
        b.add(layer1);
        b.add(layer2);
        return b.finish().value();
    }
};

/// average = keep * average, returned in y.
plan_description average()
{
    plan_builder b("average");
    const auto keep = b.parameter<float>("keep");
    const auto average = b.state<float>(4, "average");
    const auto y = b.output<float>(4, "y");
    b.add(scal{.x = average, .n = 4}, bind(&scal::alpha, keep));
    b.add(copy{.src = average, .dst = y});
    return b.finish().value();
}

void building(collection& c)
{
    const auto refused = [&](const std::function<void(classifier&)>& add) {
        classifier k;
        add(k);
        c.add(k.b.finish());
    };
    refused([](classifier& k) {
        k.b.add(copy{.src = k.x.subspan(0, 10), .dst = k.y});
        k.b.add(k.layer2);
    });
    refused([](classifier& k) {
        k.layer1.y = k.b.scratch<float>(600, "wide");
        k.b.add(k.layer1);
    });
    refused([](classifier& k) { k.b.add(copy{.src = k.x.subspan(0, 8), .dst = k.y.subspan(0, 8)}); });
    refused([](classifier& k) {
        plan_builder other("other");
        k.b.add(copy{.src = other.input<float>(10), .dst = k.y});
    });
    refused([](classifier& k) { k.b.add(scal{.x = k.x, .n = 1024, .alpha = 2}); });
    refused([](classifier& k) {
        k.b.add(k.layer1);
        k.b.add(k.layer2, bind(&gemv::n, k.b.parameter<std::uint64_t>("columns")));
    });

    device_fixture f(pool_options());
    const auto buffer = f.upload(numbers(10));
    refused([&](classifier& k) { k.b.add(copy{.src = buffer, .dst = k.y}); });

    plan_builder no_effect("classify");
    no_effect.add(copy{.src = no_effect.input<float>(10), .dst = no_effect.scratch<float>(10)});
    c.add(no_effect.finish());
    plan_set_builder twice("models");
    for (int i = 0; i < 2; ++i) {
        plan_builder& b = twice.plan("classify");
        b.add(copy{.src = b.input<float>(10), .dst = b.output<float>(10)});
    }
    c.add(twice.finish());
}

void loading(collection& c)
{
    device_fixture f(pool_options());
    c.add(await(f.io, f.gpu.async_load(plan_description())));
    const plan_options more_than_all{.instances = 4, .initial = 8};
    c.add(await(f.io, f.gpu.async_load(average(), more_than_all)));
}

void running(collection& c)
{
    device_fixture f(pool_options());
    const auto loaded = await(f.io, f.gpu.async_load(classifier().finish()));
    REQUIRE(loaded);
    const plan& classify = loaded.value();
    const std::vector<float> x(1024);
    const std::vector<float> part(1000);
    std::vector<float> y(10);
    std::vector<double> wide(10);
    c.add(await(f.io, classify.async_run(from(part), to(y))));
    c.add(await(f.io, classify.async_run(from(x), to(wide))));
    c.add(await(f.io, classify.async_run(from(x))));
    c.add(await(f.io, classify.async_run(from(x), from(x), to(y))));
    std::vector<float> both(1024);
    c.add(await(f.io, classify.async_run(from(both), to(std::span(both).first(10)))));
    REQUIRE(await(f.io, classify.async_unload()));
    c.add(await(f.io, classify.async_run(from(x), to(y))));
    // Completes on a thread of the system executor.
    c.add(plan().async_run(from(x), to(y))(asio::use_future).get());

    const auto with_parameter = await(f.io, f.gpu.async_load(average()));
    REQUIRE(with_parameter);
    std::vector<float> kept(4);
    c.add(await(f.io, with_parameter.value().async_run(value(0.5), to(kept))));
    c.add(await(f.io, with_parameter.value().async_run(to(kept))));
}

} // namespace

void add_plan_mistakes(collection& c)
{
    building(c);
    loading(c);
    running(c);
}

} // namespace test
