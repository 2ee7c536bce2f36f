#include "naive.hpp"

#include "clock.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

namespace coaccel::bench {
namespace {

namespace asio = boost::asio;

struct shared {
    const raw_gpu& raw;
    asio::io_context& io;
    std::vector<double>& times;
    int left;
};

class chain {
public:
    chain(shared& with, int ops) : with_(&with), ops_(ops) {}

    void next()
    {
        if (ops_-- == 0) {
            if (--with_->left == 0)
                with_->io.stop();
            return;
        }
        began_ = clock::now();
        with_->raw.launch();
        with_->raw.check(with_->raw.api().cuLaunchHostFunc(with_->raw.stream(), &ended, this), "cuLaunchHostFunc");
    }

private:
    static void CUDA_CB ended(void* p)
    {
        auto* self = static_cast<chain*>(p);
        asio::post(self->with_->io, [self] {
            self->with_->times.push_back(seconds_since(self->began_));
            self->next();
        });
    }

    shared* with_;
    int ops_;
    clock::time_point began_;
};

// Waits on every exit, because a host function must not find the io_context destroyed.
struct wait_for_all {
    const raw_gpu& raw;
    ~wait_for_all() { (void)raw.api().cuStreamSynchronize(raw.stream()); }
};

} // namespace

double naive_time(const raw_gpu& raw, int at_a_time, int ops_each, std::vector<double>& times)
{
    const auto inside = raw.enter();
    times.reserve(times.size() + static_cast<std::size_t>(at_a_time) * static_cast<std::size_t>(ops_each));
    asio::io_context io(1);
    const auto work = asio::make_work_guard(io);
    shared with{raw, io, times, at_a_time};
    std::vector<chain> chains(static_cast<std::size_t>(at_a_time), chain(with, ops_each));
    const wait_for_all last{raw};
    const auto began = clock::now();
    for (chain& c : chains)
        c.next();
    io.run();
    return seconds_since(began) / (static_cast<double>(at_a_time) * ops_each);
}

} // namespace coaccel::bench
