// The page of a running job: a key cancels it, and a cancelled one starts again by loading the page again.
import { addKey } from "./keys.js";

addKey("c", "cancel the computation", () => document.getElementById("cancel")?.click());
document.addEventListener("click", (event) => event.target.closest("#again") && location.reload());
