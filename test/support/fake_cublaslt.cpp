#include "support/fake_cublaslt.hpp"

#include <boost/assert.hpp>

#include <cmath>
#include <mutex>
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
    std::thread::id chooser{};
    std::uint64_t choices = 0;
    bool none = false;
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

using layout = fake_cublaslt::layout;

std::size_t element_bytes(cudaDataType type)
{
    switch (type) {
    case CUDA_R_32F:
    case CUDA_R_32I: return 4;
    case CUDA_R_16F:
    case CUDA_R_16BF: return 2;
    default: return 1;
    }
}

std::size_t batch_of(const layout& l)
{
    return static_cast<std::size_t>(l.attributes.get<std::int32_t>(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1));
}

std::size_t stride_of(const layout& l)
{
    return static_cast<std::size_t>(l.attributes.get<std::int64_t>(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 0));
}

std::size_t bytes_of(const layout& l)
{
    return ((batch_of(l) - 1) * stride_of(l) + (l.cols - 1) * static_cast<std::size_t>(l.ld) + l.rows) *
           element_bytes(l.type);
}

/// The sides of op(X).
struct sides {
    std::uint64_t rows, cols;

    sides(const layout& l, bool transposed) : rows(transposed ? l.cols : l.rows), cols(transposed ? l.rows : l.cols) {}
};

bool is_transposed(const fake_cublaslt::product& p, cublasLtMatmulDescAttributes_t which)
{
    return p.how.attributes.get<std::int32_t>(which) != CUBLAS_OP_N;
}

unsigned epilogue_of(const fake_cublaslt::product& p)
{
    return p.how.attributes.get<std::uint32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
}

const void* address(const fake_cublaslt::product& p, cublasLtMatmulDescAttributes_t which)
{
    return p.how.attributes.get<const void*>(which);
}

/// Null, or what is wrong.
const char* problem_of(const fake_cublaslt::product& p)
{
    const sides a(p.a, is_transposed(p, CUBLASLT_MATMUL_DESC_TRANSA));
    const sides b(p.b, is_transposed(p, CUBLASLT_MATMUL_DESC_TRANSB));
    if (a.cols != b.rows || a.rows != p.c.rows || b.cols != p.c.cols)
        return "the sides of the matrices differ";
    if (batch_of(p.a) != batch_of(p.b) || batch_of(p.a) != batch_of(p.c))
        return "the numbers of matrices differ";
    for (const layout* l : {&p.a, &p.b, &p.c})
        if (l->ld < static_cast<std::int64_t>(l->rows))
            return "a leading dimension is too small";
    const bool fp8 = p.a.type == CUDA_R_8F_E4M3 || p.a.type == CUDA_R_8F_E5M2;
    if (fp8 && (!is_transposed(p, CUBLASLT_MATMUL_DESC_TRANSA) || is_transposed(p, CUBLASLT_MATMUL_DESC_TRANSB) ||
                p.a.ld % 16 != 0 || p.b.ld % 16 != 0 || a.cols % 16 != 0))
        return "not a product of fp8";
    if ((epilogue_of(p) & CUBLASLT_EPILOGUE_BIAS) != 0 && !address(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER))
        return "there is no bias";
    return nullptr;
}

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
    const bool ta = is_transposed(p, CUBLASLT_MATMUL_DESC_TRANSA), tb = is_transposed(p, CUBLASLT_MATMUL_DESC_TRANSB);
    const unsigned epilogue = epilogue_of(p);
    const auto* const bias = static_cast<const float*>(address(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER));
    const auto lda = static_cast<std::size_t>(p.a.ld), ldb = static_cast<std::size_t>(p.b.ld);
    for (std::size_t batch = 0; batch < batch_of(p.c); ++batch) {
        const float* const a = static_cast<const float*>(p.a_address) + batch * stride_of(p.a);
        const float* const b = static_cast<const float*>(p.b_address) + batch * stride_of(p.b);
        float* const c = static_cast<float*>(p.c_address) + batch * stride_of(p.c);
        for (std::size_t j = 0; j < p.c.cols; ++j)
            for (std::size_t i = 0; i < p.c.rows; ++i) {
                float sum = 0;
                for (std::size_t k = 0; k < sides(p.a, ta).cols; ++k)
                    sum += a[ta ? k + i * lda : i + k * lda] * b[tb ? j + k * ldb : k + j * ldb];
                float& to = c[i + j * static_cast<std::size_t>(p.c.ld)];
                sum = alpha * sum + (beta == 0 ? 0 : beta * to);
                to = activated((epilogue & CUBLASLT_EPILOGUE_BIAS) != 0 ? sum + bias[i] : sum, epilogue);
            }
    }
}

void run(fake_cuda& d, const fake_cublaslt::product& p, bool on_device, float alpha, float beta)
{
    for (const auto& [l, at] : {std::pair(&p.a, p.a_address), std::pair(&p.b, p.b_address)})
        if (!d.touch(at, bytes_of(*l)))
            return;
    if (!d.touch_to_write(p.c_address, bytes_of(p.c)))
        return;
    for (const auto which : {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER})
        if (const void* scale = address(p, which); scale && !d.touch(scale, sizeof(float)))
            return;
    if ((epilogue_of(p) & CUBLASLT_EPILOGUE_BIAS) != 0) {
        const auto type = p.how.attributes.get<std::int32_t>(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, p.c.type);
        if (!d.touch(address(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER), p.c.rows * element_bytes(cudaDataType(type))))
            return;
    }
    if (on_device) {
        if (!d.touch(p.alpha, sizeof(float)) || !d.touch(p.beta, sizeof(float)))
            return;
        alpha = *static_cast<const float*>(p.alpha);
        beta = *static_cast<const float*>(p.beta);
    }
    if (p.a.type == CUDA_R_32F && p.c.type == CUDA_R_32F)
        multiply(p, alpha, beta);
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
    switch (which) {
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER: return sizeof(void*);
    default: return 4;
    }
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

cublasStatus_t choose(cublasLtHandle_t h, cublasLtMatmulDesc_t how, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                      cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference,
                      int wanted, cublasLtMatmulHeuristicResult_t* found, int* count)
{
    constexpr auto function = "cublasLtMatmulAlgoGetHeuristic";
    auto& s = *current_lt;
    return s.with(function, [&] {
        if (!s.handles.contains(h) || !s.operations.contains(how) || !s.layouts.contains(a) || !s.layouts.contains(b) ||
            !s.layouts.contains(c) || c != d || !s.preferences.contains(preference) || wanted < 1)
            return s.complain(function, "unknown object");
        s.chooser = std::this_thread::get_id();
        s.last_preferences = *s.preferences.at(preference);
        *count = s.none ? 0 : 1;
        if (!s.none) {
            found->state = CUBLAS_STATUS_SUCCESS;
            found->algo.data[0] = ++s.choices;
        }
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
        if (!s.handles.contains(h) || !s.operations.contains(how) || !s.layouts.contains(a_layout) ||
            !s.layouts.contains(b_layout) || !s.layouts.contains(c_layout))
            return s.complain(function, "unknown object");
        if (c != d || c_layout != d_layout)
            return s.complain(function, "C and D differ");
        const fake_cublaslt::product p{std::this_thread::get_id(),
                                       *s.operations.at(how),
                                       *s.layouts.at(a_layout),
                                       *s.layouts.at(b_layout),
                                       *s.layouts.at(c_layout),
                                       a,
                                       b,
                                       d,
                                       alpha,
                                       beta,
                                       workspace,
                                       bytes,
                                       algorithm->data[0]};
        if (const char* problem = problem_of(p))
            return s.complain(function, problem);
        s.products.push_back(p);
        const bool on_device =
            p.how.attributes.get<std::int32_t>(CUBLASLT_MATMUL_DESC_POINTER_MODE) == CUBLASLT_POINTER_MODE_DEVICE;
        const float by = on_device ? 0 : *static_cast<const float*>(alpha);
        const float keep = on_device ? 0 : *static_cast<const float*>(beta);
        const auto done = s.driver.enqueue(reinterpret_cast<CUstream>(stream),
                                           [p, &d = s.driver, on_device, by, keep] { run(d, p, on_device, by, keep); });
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

void fake_cublaslt::find_none(bool none)
{
    const std::scoped_lock lock(state_->mutex);
    state_->none = none;
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
