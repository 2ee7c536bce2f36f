#include "support/fake_cublaslt.hpp"

#include "support/fake_cublaslt_checks.hpp"

#include <boost/assert.hpp>

#include <atomic>
#include <cmath>
#include <mutex>
#include <optional>
#include <set>

namespace test {

struct fake_cublaslt::state {
    struct plan {
        cublasStatus_t status;
        int countdown;
    };

    fake_cuda& driver;
    coaccel::cuda::cublaslt_api table{};
    mutable std::mutex mutex{};
    std::uintptr_t next_handle = 0xb1a60000;
    std::set<cublasLtHandle_t> handles{};
    std::map<const void*, std::unique_ptr<layout>> layouts{};
    std::map<const void*, std::unique_ptr<operation>> operations{};
    std::map<const void*, std::unique_ptr<attribute_map>> preferences{};
    std::vector<product> products{};
    attribute_map last_preferences{};
    int last_wanted = 0;
    std::thread::id chooser{};
    int choices = 0;
    std::vector<algorithm> algorithms{{}};
    std::function<void(CUstream)> before_products{};
    // Work of a context that was given up may outlive this object.
    std::shared_ptr<std::atomic<std::int64_t>> busy = std::make_shared<std::atomic<std::int64_t>>(0);
    std::map<std::string, std::vector<plan>, std::less<>> plans{};
    std::map<std::string, int, std::less<>> counts{};

    /// The common start of every call.
    cublasStatus_t begin(std::string_view function)
    {
        ++counts[std::string(function)];
        cublasStatus_t planned = CUBLAS_STATUS_SUCCESS;
        auto& mine = plans[std::string(function)];
        for (auto& p : mine)
            if (--p.countdown == 0)
                planned = p.status;
        std::erase_if(mine, [](const plan& p) { return p.countdown <= 0; });
        return planned;
    }

    template <class Body>
    cublasStatus_t with(std::string_view function, Body body)
    {
        const std::scoped_lock lock(mutex);
        if (const auto status = begin(function); status != CUBLAS_STATUS_SUCCESS)
            return status;
        return body();
    }

    cublasStatus_t complain(std::string_view function, const char* what) const
    {
        driver.complain(std::string(function).append(": ").append(what));
        return CUBLAS_STATUS_INVALID_VALUE;
    }
};

namespace {

fake_cublaslt::state* current_lt = nullptr;

using namespace fake_lt;

float activated(float x, unsigned epilogue)
{
    if ((epilogue & CUBLASLT_EPILOGUE_RELU) != 0)
        return x < 0 ? 0 : x;
    if ((epilogue & CUBLASLT_EPILOGUE_GELU) != 0)
        return x / 2 * (1 + std::tanh(0.7978845608F * (x + 0.044715F * x * x * x)));
    return x;
}

/// Products of floats.
void multiply(const fake_cublaslt::product& p, float alpha, float beta)
{
    const bool ta = is_transposed(p.how, CUBLASLT_MATMUL_DESC_TRANSA);
    const bool tb = is_transposed(p.how, CUBLASLT_MATMUL_DESC_TRANSB);
    const auto* const bias =
        has_bias(p.how) ? static_cast<const float*>(address(p.how, CUBLASLT_MATMUL_DESC_BIAS_POINTER)) : nullptr;
    const auto lda = static_cast<std::size_t>(p.a.ld), ldb = static_cast<std::size_t>(p.b.ld);
    for (std::size_t batch = 0; batch < batch_of(p.d); ++batch) {
        const float* const a = static_cast<const float*>(p.a_address) + batch * stride_of(p.a);
        const float* const b = static_cast<const float*>(p.b_address) + batch * stride_of(p.b);
        const float* const c = static_cast<const float*>(p.c_address) + batch * stride_of(p.c);
        float* const d = static_cast<float*>(p.d_address) + batch * stride_of(p.d);
        for (std::size_t j = 0; j < p.d.cols; ++j)
            for (std::size_t i = 0; i < p.d.rows; ++i) {
                float sum = 0;
                for (std::size_t k = 0; k < sides(p.a, ta).cols; ++k)
                    sum += a[ta ? k + i * lda : i + k * lda] * b[tb ? j + k * ldb : k + j * ldb];
                sum = alpha * sum + (beta == 0 ? 0 : beta * c[i + j * static_cast<std::size_t>(p.c.ld)]);
                d[i + j * static_cast<std::size_t>(p.d.ld)] = activated(bias ? sum + bias[i] : sum, epilogue_of(p.how));
            }
    }
}

/// The factors, or none: they are in device memory that cannot be read.
std::optional<std::pair<float, float>> factors_of(fake_cuda& d, const fake_cublaslt::product& p, bool on_device,
                                                  float alpha, float beta)
{
    if (!on_device)
        return std::pair(alpha, beta);
    if (!d.touch(p.alpha, sizeof(float)) || !d.touch(p.beta, sizeof(float)))
        return std::nullopt;
    return std::pair(*static_cast<const float*>(p.alpha), *static_cast<const float*>(p.beta));
}

bool touch_extras(fake_cuda& d, const fake_cublaslt::product& p)
{
    const auto touch = [&](cublasLtMatmulDescAttributes_t which, std::size_t bytes) {
        const void* const at = address(p.how, which);
        return !at || d.touch(at, bytes);
    };
    const std::size_t of_a = scales_lines(p.how, true) ? p.d.rows : 1;
    const std::size_t of_b = scales_lines(p.how, false) ? p.d.cols : 1;
    void* const amax = const_cast<void*>(address(p.how, CUBLASLT_MATMUL_DESC_AMAX_D_POINTER));
    return touch(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, of_a * sizeof(float)) &&
           touch(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, of_b * sizeof(float)) &&
           touch(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, sizeof(float)) &&
           (!amax || d.touch_to_write(amax, sizeof(float))) &&
           (!has_bias(p.how) ||
            touch(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.d.rows * element_bytes(bias_type({p.how, p.a, p.b, p.c, p.d}))));
}

void run(fake_cuda& d, const fake_cublaslt::product& p, bool on_device, float alpha, float beta)
{
    const auto factors = factors_of(d, p, on_device, alpha, beta);
    if (!factors)
        return;
    if (!d.touch(p.a_address, bytes_of(p.a)) || !d.touch(p.b_address, bytes_of(p.b)))
        return;
    if (factors->second != 0 && !d.touch(p.c_address, bytes_of(p.c)))
        return;
    if (!d.touch_to_write(p.d_address, bytes_of(p.d)) || !touch_extras(d, p))
        return;
    if (p.a.type == CUDA_R_32F)
        multiply(p, factors->first, factors->second);
}

cublasStatus_t create(cublasLtHandle_t* made)
{
    auto& s = *current_lt;
    return s.with("cublasLtCreate", [&] {
        if (s.driver.library_call("cublasLtCreate") != CUDA_SUCCESS)
            return CUBLAS_STATUS_INTERNAL_ERROR;
        *made = reinterpret_cast<cublasLtHandle_t>(s.next_handle += 16);
        s.handles.insert(*made);
        return CUBLAS_STATUS_SUCCESS;
    });
}

cublasStatus_t destroy(cublasLtHandle_t h)
{
    auto& s = *current_lt;
    return s.with("cublasLtDestroy", [&] {
        (void)s.driver.library_call("cublasLtDestroy");
        return s.handles.erase(h) == 1 ? CUBLAS_STATUS_SUCCESS : s.complain("cublasLtDestroy", "unknown handle");
    });
}

template <class Map>
auto make_in(Map& map)
{
    auto made = std::make_unique<typename Map::mapped_type::element_type>();
    auto* const at = made.get();
    map.emplace(at, std::move(made));
    return at;
}

cublasStatus_t create_operation(cublasLtMatmulDesc_t* made, cublasComputeType_t compute, cudaDataType_t scale)
{
    auto& s = *current_lt;
    return s.with("cublasLtMatmulDescCreate", [&] {
        auto* const o = make_in(s.operations);
        o->compute = compute;
        o->scale_type = scale;
        *made = reinterpret_cast<cublasLtMatmulDesc_t>(o);
        return CUBLAS_STATUS_SUCCESS;
    });
}

cublasStatus_t create_layout(cublasLtMatrixLayout_t* made, cudaDataType type, std::uint64_t rows, std::uint64_t cols,
                             std::int64_t ld)
{
    auto& s = *current_lt;
    return s.with("cublasLtMatrixLayoutCreate", [&] {
        auto* const l = make_in(s.layouts);
        l->type = type;
        l->rows = rows;
        l->cols = cols;
        l->ld = ld;
        *made = reinterpret_cast<cublasLtMatrixLayout_t>(l);
        return CUBLAS_STATUS_SUCCESS;
    });
}

cublasStatus_t create_preference(cublasLtMatmulPreference_t* made)
{
    auto& s = *current_lt;
    return s.with("cublasLtMatmulPreferenceCreate", [&] {
        *made = reinterpret_cast<cublasLtMatmulPreference_t>(make_in(s.preferences));
        return CUBLAS_STATUS_SUCCESS;
    });
}

template <class Map>
cublasStatus_t erase_from(Map fake_cublaslt::state::* map, std::string_view function, const void* which)
{
    auto& s = *current_lt;
    return s.with(function, [&] {
        return (s.*map).erase(which) == 1 ? CUBLAS_STATUS_SUCCESS : s.complain(function, "unknown object");
    });
}

cublasStatus_t destroy_operation(cublasLtMatmulDesc_t o)
{
    return erase_from(&fake_cublaslt::state::operations, "cublasLtMatmulDescDestroy", o);
}

cublasStatus_t destroy_layout(cublasLtMatrixLayout_t l)
{
    return erase_from(&fake_cublaslt::state::layouts, "cublasLtMatrixLayoutDestroy", l);
}

cublasStatus_t destroy_preference(cublasLtMatmulPreference_t p)
{
    return erase_from(&fake_cublaslt::state::preferences, "cublasLtMatmulPreferenceDestroy", p);
}

/// The sizes of attributes in the manual.
std::size_t size_of(cublasLtMatmulDescAttributes_t which)
{
    return is_address(which) ? sizeof(void*) : 4;
}

std::size_t size_of(cublasLtMatrixLayoutAttribute_t which)
{
    return which == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET ? 8 : 4;
}

std::size_t size_of(cublasLtMatmulPreferenceAttributes_t which)
{
    return which == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? 8 : 4;
}

template <class Map, class Attribute>
cublasStatus_t set_in(Map fake_cublaslt::state::* map, std::string_view function, const void* of, Attribute which,
                      const void* value, std::size_t bytes)
{
    auto& s = *current_lt;
    return s.with(function, [&] {
        const auto found = (s.*map).find(of);
        if (found == (s.*map).end())
            return s.complain(function, "unknown object");
        if (bytes != size_of(which))
            return s.complain(function, "another size");
        if constexpr (requires { found->second->attributes; })
            found->second->attributes.set(which, value, bytes);
        else
            found->second->set(which, value, bytes);
        return CUBLAS_STATUS_SUCCESS;
    });
}

cublasStatus_t set_operation(cublasLtMatmulDesc_t of, cublasLtMatmulDescAttributes_t which, const void* value,
                             std::size_t bytes)
{
    return set_in(&fake_cublaslt::state::operations, "cublasLtMatmulDescSetAttribute", of, which, value, bytes);
}

cublasStatus_t set_layout(cublasLtMatrixLayout_t of, cublasLtMatrixLayoutAttribute_t which, const void* value,
                          std::size_t bytes)
{
    return set_in(&fake_cublaslt::state::layouts, "cublasLtMatrixLayoutSetAttribute", of, which, value, bytes);
}

cublasStatus_t set_preference(cublasLtMatmulPreference_t of, cublasLtMatmulPreferenceAttributes_t which,
                              const void* value, std::size_t bytes)
{
    return set_in(&fake_cublaslt::state::preferences, "cublasLtMatmulPreferenceSetAttribute", of, which, value, bytes);
}

/// Nothing: one of the objects does not exist.
std::optional<problem> find_problem(const fake_cublaslt::state& s, cublasLtHandle_t h, cublasLtMatmulDesc_t how,
                                    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                    cublasLtMatrixLayout_t d)
{
    if (!s.handles.contains(h) || !s.operations.contains(how))
        return std::nullopt;
    for (const cublasLtMatrixLayout_t l : {a, b, c, d})
        if (!s.layouts.contains(l))
            return std::nullopt;
    return problem{*s.operations.at(how), *s.layouts.at(a), *s.layouts.at(b), *s.layouts.at(c), *s.layouts.at(d)};
}

cublasStatus_t choose(cublasLtHandle_t h, cublasLtMatmulDesc_t how, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                      cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference,
                      int wanted, cublasLtMatmulHeuristicResult_t* found, int* count)
{
    constexpr auto function = "cublasLtMatmulAlgoGetHeuristic";
    auto& s = *current_lt;
    return s.with(function, [&] {
        const auto p = find_problem(s, h, how, a, b, c, d);
        if (!p || !s.preferences.contains(preference) || wanted < 1)
            return s.complain(function, "unknown object");
        if (const char* wrong = wrong_problem(*p))
            return s.complain(function, wrong);
        s.chooser = std::this_thread::get_id();
        s.last_preferences = *s.preferences.at(preference);
        s.last_wanted = wanted;
        ++s.choices;
        const auto alignment = [&](cublasLtMatmulPreferenceAttributes_t of) {
            return static_cast<std::uint16_t>(s.last_preferences.get<std::uint32_t>(of, 256));
        };
        algorithm_content made{algorithm_content::magic,
                               0,
                               std::uint64_t(s.choices),
                               {alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES),
                                alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES),
                                alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES),
                                alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)},
                               problem_hash(*p).value()};
        const auto room = s.last_preferences.get<std::uint64_t>(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
        *count = 0;
        for (const auto& algorithm : s.algorithms) {
            if (*count < wanted && algorithm.workspace_bytes <= room) {
                auto& to = found[(*count)++];
                to = {};
                to.state = algorithm.found;
                to.workspaceSize = algorithm.workspace_bytes;
                std::memcpy(&to.algo, &made, sizeof(made));
            }
            ++made.number;
        }
        return CUBLAS_STATUS_SUCCESS;
    });
}

cublasStatus_t check_algorithm(cublasLtHandle_t h, cublasLtMatmulDesc_t how, cublasLtMatrixLayout_t a,
                               cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                               const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulHeuristicResult_t* result)
{
    constexpr auto function = "cublasLtMatmulAlgoCheck";
    auto& s = *current_lt;
    return s.with(function, [&] {
        const auto p = find_problem(s, h, how, a, b, c, d);
        if (!p || !algorithm || !result)
            return s.complain(function, "unknown object");
        if (const char* wrong = wrong_problem(*p))
            return s.complain(function, wrong);
        const auto content = content_of(*algorithm);
        if (content.made_here != algorithm_content::magic || content.number >= s.algorithms.size())
            return CUBLAS_STATUS_NOT_SUPPORTED;
        if (content.of_problem != problem_hash(*p).value())
            return s.complain(function, "the algorithm is that of another problem");
        *result = {};
        result->algo = *algorithm;
        result->workspaceSize = s.algorithms[content.number].workspace_bytes;
        return CUBLAS_STATUS_SUCCESS;
    });
}

cublasStatus_t matmul(cublasLtHandle_t h, cublasLtMatmulDesc_t how, const void* alpha, const void* a,
                      cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                      const void* c, cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                      const cublasLtMatmulAlgo_t* algorithm, void* workspace, std::size_t bytes, cudaStream_t stream)
{
    constexpr auto function = "cublasLtMatmul";
    auto& s = *current_lt;
    return s.with(function, [&] {
        if (s.driver.library_call(function) != CUDA_SUCCESS)
            return CUBLAS_STATUS_INTERNAL_ERROR;
        const auto described = find_problem(s, h, how, a_layout, b_layout, c_layout, d_layout);
        if (!described)
            return s.complain(function, "unknown object");
        if (const char* wrong = wrong_problem(*described))
            return s.complain(function, wrong);
        const auto content = content_of(*algorithm);
        if (content.made_here != algorithm_content::magic || content.number >= s.algorithms.size())
            return s.complain(function, "unknown algorithm");
        if (content.of_problem != problem_hash(*described).value())
            return s.complain(function, "the algorithm is that of another problem");
        const auto& chosen = s.algorithms[content.number];
        if (chosen.found != CUBLAS_STATUS_SUCCESS)
            return s.complain(function, "the algorithm was not found with success");
        if (!workspace || chosen.workspace_bytes > bytes || reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0)
            return s.complain(function, "another workspace is needed");
        const fake_cublaslt::product p{std::this_thread::get_id(),
                                       described->how,
                                       described->a,
                                       described->b,
                                       described->c,
                                       described->d,
                                       a,
                                       b,
                                       c,
                                       d,
                                       alpha,
                                       beta,
                                       workspace,
                                       bytes,
                                       static_cast<int>(content.number),
                                       static_cast<int>(content.choice)};
        const bool on_device =
            p.how.attributes.get<std::int32_t>(CUBLASLT_MATMUL_DESC_POINTER_MODE) == CUBLASLT_POINTER_MODE_DEVICE;
        // The bits of the i32 zero are those of the float.
        const float by = on_device ? 0 : *static_cast<const float*>(alpha);
        const float keep = on_device ? 0 : *static_cast<const float*>(beta);
        if (const char* wrong = wrong_addresses(p, content, on_device || keep != 0))
            return s.complain(function, wrong);
        s.products.push_back(p);
        if (chosen.status != CUBLAS_STATUS_SUCCESS)
            return chosen.status;
        if (s.before_products)
            s.before_products(reinterpret_cast<CUstream>(stream));
        const auto done =
            s.driver.enqueue(reinterpret_cast<CUstream>(stream),
                             [p, &d = s.driver, on_device, by, keep, busy = s.busy, took = chosen.duration.count()] {
                                 run(d, p, on_device, by, keep);
                                 *busy += took;
                             });
        return done == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
    });
}

} // namespace

fake_cublaslt::fake_cublaslt(fake_cuda& driver) : state_(new state{.driver = driver})
{
    BOOST_ASSERT_MSG(!current_lt, "one fake cuBLASLt at a time");
    current_lt = state_.get();
    auto& t = state_->table;
    t.cublasLtGetProperty = [](libraryPropertyType, int* value) {
        *value = 13;
        return CUBLAS_STATUS_SUCCESS;
    };
    t.cublasLtCreate = &create;
    t.cublasLtDestroy = &destroy;
    t.cublasLtMatmul = &matmul;
    t.cublasLtMatmulAlgoCheck = &check_algorithm;
    t.cublasLtMatmulAlgoGetHeuristic = &choose;
    t.cublasLtMatmulDescCreate = &create_operation;
    t.cublasLtMatmulDescDestroy = &destroy_operation;
    t.cublasLtMatmulDescSetAttribute = &set_operation;
    t.cublasLtMatmulPreferenceCreate = &create_preference;
    t.cublasLtMatmulPreferenceDestroy = &destroy_preference;
    t.cublasLtMatmulPreferenceSetAttribute = &set_preference;
    t.cublasLtMatrixLayoutCreate = &create_layout;
    t.cublasLtMatrixLayoutDestroy = &destroy_layout;
    t.cublasLtMatrixLayoutSetAttribute = &set_layout;
    t.path = "fake";
    t.version = 130000;
}

fake_cublaslt::~fake_cublaslt()
{
    if (alive() != 0 && !state_->driver.dead())
        state_->driver.complain(std::to_string(alive()) + " objects of cuBLASLt left");
    current_lt = nullptr;
}

const coaccel::cuda::cublaslt_api& fake_cublaslt::api() const noexcept
{
    return state_->table;
}

void fake_cublaslt::fail(std::string_view function, cublasStatus_t status, int nth)
{
    const std::scoped_lock lock(state_->mutex);
    state_->plans[std::string(function)].push_back({status, nth});
}

void fake_cublaslt::set_algorithms(std::vector<algorithm> all)
{
    const std::scoped_lock lock(state_->mutex);
    state_->algorithms = std::move(all);
}

void fake_cublaslt::set_version(int version)
{
    state_->table.version = version;
}

cublasLtMatmulAlgo_t fake_cublaslt::unknown_algorithm()
{
    cublasLtMatmulAlgo_t made{};
    const algorithm_content content{algorithm_content::magic, ~std::uint64_t(0), 1, {1, 1, 1, 1}, 0};
    std::memcpy(&made, &content, sizeof(content));
    return made;
}

void fake_cublaslt::before_products(std::function<void(CUstream)> call)
{
    const std::scoped_lock lock(state_->mutex);
    state_->before_products = std::move(call);
}

std::chrono::microseconds fake_cublaslt::busy() const
{
    return std::chrono::microseconds(state_->busy->load());
}

int fake_cublaslt::calls(std::string_view function) const
{
    const std::scoped_lock lock(state_->mutex);
    const auto found = state_->counts.find(function);
    return found == state_->counts.end() ? 0 : found->second;
}

std::vector<fake_cublaslt::product> fake_cublaslt::products() const
{
    const std::scoped_lock lock(state_->mutex);
    return state_->products;
}

fake_cublaslt::attribute_map fake_cublaslt::preferences() const
{
    const std::scoped_lock lock(state_->mutex);
    return state_->last_preferences;
}

int fake_cublaslt::wanted() const
{
    const std::scoped_lock lock(state_->mutex);
    return state_->last_wanted;
}

std::thread::id fake_cublaslt::chooser() const
{
    const std::scoped_lock lock(state_->mutex);
    return state_->chooser;
}

std::size_t fake_cublaslt::alive() const
{
    const std::scoped_lock lock(state_->mutex);
    return state_->handles.size() + state_->layouts.size() + state_->operations.size() + state_->preferences.size();
}

} // namespace test
