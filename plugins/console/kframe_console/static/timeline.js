// The slider of the history: each of its positions is an address of the page.
const slider = document.getElementById("position");
const points = JSON.parse(slider.dataset.points);
const label = document.getElementById("position-label");

function describe() {
  const [offset, time] = points[slider.value];
  slider.setAttribute("aria-valuetext", `offset ${offset}, ${time}`);
  label.textContent = `offset ${offset}, ${time}`;
}

slider.addEventListener("input", describe);
slider.addEventListener("change", () => {
  const url = new URL(location.href);
  if (Number(slider.value) === points.length - 1) url.searchParams.delete("at");
  else url.searchParams.set("at", points[slider.value][0]);
  location.href = url;
});
describe();
