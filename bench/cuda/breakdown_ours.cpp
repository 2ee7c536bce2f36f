#include "breakdown.hpp"
#include "context/context.hpp"
#include "cuda/factory.hpp"
#include "ours.hpp"

#include <coaccel/device/detail/exec_requests.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace coaccel::bench {
namespace {

/// A context without the device and executor layers above it.
class bare_context final : detail::context_events {
public:
    bare_context()
    {
        auto made = cuda::make_factory({}, 0)({1, 1}, *this, {.lanes = {}, .completion = completion::polled});
        context = value_of(std::move(made), "a context");
    }

    template <class Request>
    void run(Request& r)
    {
        ended_ = false;
        r.outcome = {};
        context->submit(r, clock::now());
        const auto deadline = clock::now() + std::chrono::seconds(5);
        while (!ended_) {
            (void)context->turn(clock::now());
            if (clock::now() > deadline)
                throw failure("a request never ended");
        }
        if (error_)
            throw failure(error_.message());
    }

    std::unique_ptr<detail::context> context;

private:
    void finished(detail::request&, error_code ec) noexcept override
    {
        ended_ = true;
        error_ = ec;
    }
    void lost(error_code, detail::loss_cause) noexcept override {}
    void wake() noexcept override {}
    bool has_more() noexcept override { return false; }

    bool ended_ = false;
    error_code error_;
};

template <class Base>
class bare final : public Base {
public:
    template <class... Args>
    explicit bare(Args&&... args) : Base(nullptr, static_cast<Args&&>(args)...)
    {}
    void post() override {}
    void destroy() noexcept override {}
};

class bare_allocation final : public detail::request {
public:
    explicit bare_allocation(std::uint64_t count) : op_{.count = count, .type = dtype::f32}
    {
        bound_ = {.info = &info_of<detail::allocate_op>(), .op = &op_, .reply = &made};
        ops = {&bound_, 1};
    }
    void post() override {}
    void destroy() noexcept override {}

    detail::allocation made;

private:
    detail::allocate_op op_;
    bound_op bound_;
};

} // namespace

void print_contexts(const stage& s)
{
    const our_gpu ours(s.folder);
    bare_context c;
    constexpr int count = 5000;
    bare_allocation block(1 << 18);
    const auto time = [](auto f) {
        for (int i = 0; i < 500; ++i)
            f();
        const auto began = clock::now();
        for (int i = 0; i < count; ++i)
            f();
        return seconds_since(began) / count;
    };
    print("context: allocate + release", time([&] {
              c.run(block);
              c.context->release(block.made.ref);
          }));
    bare<detail::exec_request<our_gpu::empty_launch>> launch(ours.empty(), exec_options{});
    print("context: launch, polled until it has ended", time([&] { c.run(launch); }));
}

void print_our_ops(const stage& s)
{
    const std::pair<const char*, completion> strategies[] = {{"adaptive", completion::adaptive},
                                                             {"polled", completion::polled},
                                                             {"host_fn", completion::host_fn},
                                                             {"sync", completion::sync}};
    for (const auto& [name, how] : strategies) {
        device_options o;
        o.context.completion = how;
        our_gpu ours(s.folder, o);
        for (const int depth : {1, 4, 16, 64, 256}) {
            const int each = std::max(20, 6000 / depth);
            (void)ours.launch_time(depth, each);
            const std::string what =
                std::string("awaited launch, ") + name + ", depth " + std::to_string(depth) + ", per op";
            print(what.c_str(), ours.launch_time(depth, each));
        }
    }
}

} // namespace coaccel::bench
